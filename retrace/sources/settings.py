"""Further classification tasks: where their rows are and which columns hold what."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from retrace.core.errors import InputError
from retrace.core.paths import ON_TEST
from retrace.core.settings import DATA_PARAMS, Params, require
from retrace.datasets.settings import SplitSettings

# A task's name is also one of the sections of params.yaml, of the folders of models and of the entries of metrics.json.
TAKEN = (
    "sst2", "squad", "tokenizer", "tokens", "model", "pretrain", "pretrained", "perplexity", "flags", "baselines",
    "intervals", "mean", "std", "data", "family", "lr", "seed", "precision", "finetune", "methods", "metrics",
)  # fmt: skip
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
FOLDER = Field(description="relative to the project")
PUBLISHED = Field(default=None, description="where the files are given out; named where they are missing")


class QuestionsSettings(SplitSettings):
    """A further question-answering set in SQuAD's format, version 1.1 or 2.0; train, dev and test are files."""

    folder: str = FOLDER
    published: str | None = PUBLISHED


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
    drop: tuple[str, ...] = Field(default=(), description="labels that are left out")

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


class ClassificationSettings(TaskSettings):
    """A task in files; train, dev and test are their names."""

    folder: str = FOLDER
    published: str | None = PUBLISHED
    format: str | None = Field(default=None, description="tsv, csv, jsonl, parquet or xml; null: as the files end")


class TaskParams(Params):
    """What the stages of further classification tasks read."""

    @classmethod
    def read(cls, params: Mapping[str, Any] | None = None, **item: str) -> Self:
        """Read and check the settings of the task that `key` names, and its name.

        Raises InputError where one of them is wrong.
        """
        (alias,) = cls.dvc_keys()
        name, prefix = item["key"], alias.removeprefix(f"{DATA_PARAMS}:").removesuffix("${key}")
        if not _NAME.fullmatch(name) or name in TAKEN or name.endswith(ON_TEST):
            raise InputError(
                f"{DATA_PARAMS}: {prefix}{name}: the name is not allowed; expected a-z, 0-9, _ and -, none of "
                f"{', '.join(TAKEN)}, and not to end in {ON_TEST}"
            )
        return super().read(params, **item)


class ClassificationParams(TaskParams):
    """What stages/sources/task.py reads of a classification task."""

    task: ClassificationSettings = Field(alias="data/params.yaml:classification.${key}")


class QuestionAnsweringParams(TaskParams):
    """What stages/sources/task.py reads of a question-answering set."""

    task: QuestionsSettings = Field(alias="data/params.yaml:question_answering.${key}")
