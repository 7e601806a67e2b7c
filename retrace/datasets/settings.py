"""Which splits a data set has, and which columns of a further task hold what."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from retrace.core.errors import InputError
from retrace.core.paths import ON_TEST
from retrace.core.settings import DATA_PARAMS, DataSource, Params, Section, require

# What is held out for validation: whole texts, with the texts inside them and all questions on them; or single rows.
SplitBy = Literal["text", "row"]
# A task's name is also that of a section of params.yaml, a folder of models/ and an entry of metrics.json.
TAKEN = (
    "sst2", "squad", "text", "tokenizer", "tokens", "model", "pretrain", "pretrained", "perplexity", "flags",
    "baselines", "intervals", "mean", "std", "data", "family", "lr", "seed", "precision", "finetune", "methods",
    "metrics", "tasks", "review", "sample", "files", "hub", "classification", "question_answering", "checkpoints",
    "run", "run_single",  # variables of dvc.yaml; DVC refuses a section of such a name
)  # fmt: skip
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")


class SplitSettings(Section):
    """Which splits a data set has; validation data may be held out of the training split."""

    train: str = Field(description="the training split")
    dev: str | None = Field(default=None, description="the validation split; null with split")
    test: str | None = Field(
        default=None, description="a labelled test split, scored once and never used to choose the epoch"
    )
    split: float | None = Field(
        default=None, gt=0, lt=1, description="in place of dev: train on this share of train and validate on the rest"
    )
    split_seed: int = Field(default=1, description="seed of the split")
    split_by: SplitBy = Field(
        default="text", description="text: texts that contain one another stay together; row: they may be separated"
    )

    @model_validator(mode="after")
    def _one_dev(self) -> Self:
        require((self.dev is None) != (self.split is None), "split", self.split, "expected either dev or split")
        taken = [name for name in (self.train, self.dev) if name is not None]
        require(self.test not in taken, "test", self.test, f"expected a split other than {' and '.join(taken)}")
        return self

    @property
    def parts(self) -> dict[str, str]:
        """The source's name of each split that it has."""
        named = {"train": self.train, "dev": self.dev, "test": self.test}
        return {part: name for part, name in named.items() if name is not None}


class TaskSettings(SplitSettings):
    """A further classification task: which columns hold what."""

    text: str | Annotated[tuple[str, ...], Field(min_length=1)] = Field(
        default="text", description="the column, or a list of columns that are joined"
    )
    pair: str | None = Field(default=None, description="the column of a second text")
    label: str = Field(default="label", description="the column of the label")
    classes: tuple[str, ...] | None = Field(
        default=None, description="names of the classes, in order; null: the labels of train, sorted"
    )
    drop: tuple[str, ...] = Field(default=(), description="labels whose rows are left out")

    @model_validator(mode="after")
    def _classes_differ(self) -> Self:
        require(bool(self.text), "text", self.text, "expected at least one column")
        classes = self.classes
        require(
            classes is None or len(set(classes)) == len(classes) > 1,
            "classes", classes, "expected two or more, each once",
        )  # fmt: skip
        both = set(classes or ()) & set(self.drop)
        require(not both, "drop", self.drop, f"{min(both, default='')!r} is one of classes")
        return self


class SourceParams(Params):
    """What the stage of every data source reads, besides its own settings."""

    data: DataSource = Field(description="the data source: generated, your own files, or the Hugging Face Hub")


class TaskParams(Params):
    """What the stages of further tasks read."""

    @classmethod
    def read(cls, params: Mapping[str, Any] | None = None, **item: str) -> Self:
        """Read and check the settings of the task called `key`, and that name.

        Raises InputError if either is wrong.
        """
        (alias,) = cls.dvc_keys()
        name, prefix = item["key"], alias.removeprefix(f"{DATA_PARAMS}:").removesuffix("${key}")
        if not _NAME.fullmatch(name) or name in TAKEN or name.endswith(ON_TEST):
            raise InputError(
                f"{DATA_PARAMS}: {prefix}{name}: the name is not allowed; expected a-z, 0-9, _ and -, none of "
                f"{', '.join(TAKEN)}, and not to end in {ON_TEST}"
            )
        return super().read(params, **item)
