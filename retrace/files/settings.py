"""Where the user's own files are."""

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from retrace.core.paths import OWN
from retrace.core.settings import Params, Section, Split, require
from retrace.datasets.settings import SplitBy

SST2_TRAIN, SST2_DEV = "train.tsv", "dev.tsv"


class FilesSettings(Section):
    """Where the user's files are; folders relative to the project."""

    text: str = Field(description="folder of wiki.{train,valid,test}.tokens, or {train,valid,test}.txt")
    sst2: str = Field(description="folder of train.tsv and dev.tsv with the columns sentence and label")
    squad: str = Field(description="folder of the questions")
    squad_train: str = Field(default="train-v2.0.json", description="file in squad, version 1.1 or 2.0")
    squad_dev: str = Field(default="dev-v2.0.json", description="file in squad")
    sst2_test: str | None = Field(
        default=None, description="a test set with labels in sst2, which is scored once and chooses no epoch"
    )
    squad_test: str | None = Field(default=None, description="the same in squad")
    sst2_split: Split | None = Field(
        default=None,
        description="train on this share of train.tsv and validate on the rest; dev.tsv, if any, is the test set then",
    )
    squad_split: Split | None = Field(default=None, description="the same of squad_train")
    split_seed: int = Field(default=1, description="draws what is trained on")
    split_by: SplitBy = Field(
        default="text",
        description="phrases of a sentence, and questions on a passage, stay together; row: they may be in both parts",
    )

    @model_validator(mode="after")
    def _other_tests(self) -> Self:
        for task, others in (("sst2", (SST2_TRAIN, SST2_DEV)), ("squad", (self.squad_train, self.squad_dev))):
            share, test = getattr(self, f"{task}_split"), getattr(self, f"{task}_test")
            taken = others if share is None else others[:1]
            require(test not in taken, f"{task}_test", test, f"expected another file than {' and '.join(taken)}")
        return self


class FilesParams(Params):
    """What stages/sources/files.py reads."""

    files: FilesSettings = Field(alias="data/params.yaml:files")

    @model_validator(mode="after")
    def _within_own(self) -> Self:
        for name in ("text", "sst2", "squad"):
            folder = Path(getattr(self.files, name))
            allowed = f"expected a folder in {OWN}, the only one in which DVC sees changes"
            require(folder.is_relative_to(OWN) and ".." not in folder.parts, f"files.{name}", str(folder), allowed)
        return self
