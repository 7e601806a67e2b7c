"""Where the user's own files are: those of the data source, under which names they are copied, and of further tasks."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from retrace.core.paths import OWN, questions_path, running_text, sentences_path
from retrace.core.settings import Params, Section, Split, require
from retrace.datasets.settings import SplitBy, SplitSettings, TaskParams, TaskSettings
from retrace.datasets.text import PARTS, text_path


@dataclass(frozen=True)
class TaskFiles:
    """The files of a task in a folder; `split` is the share of train that is trained on, where that is not all."""

    folder: Path
    train: str
    dev: str
    test: str | None
    split: float | None

    @property
    def parts(self) -> dict[str, Path]:
        """The file of each split that has one.

        Where dev is split off train, the official dev file, if there is one, is the test set.
        """
        dev, test = (self.dev, None) if self.split is None else (None, self.dev)
        test = test if test and (self.folder / test).is_file() else None
        names = {"train": self.train, "dev": dev, "test": self.test or test}
        return {part: self.folder / name for part, name in names.items() if name}


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
        _require_within(self, "squad_train", "squad_dev", "sst2_test", "squad_test")
        for task, files in self.tasks.items():
            taken = (files.train, files.dev) if files.split is None else (files.train,)
            allowed = f"expected another file than {' and '.join(taken)}"
            require(files.test not in taken, f"{task}_test", files.test, allowed)
        return self

    @property
    def tasks(self) -> dict[str, TaskFiles]:
        """The files of each task."""
        return {
            "sst2": TaskFiles(Path(self.sst2), "train.tsv", "dev.tsv", self.sst2_test, self.sst2_split),
            "squad": TaskFiles(Path(self.squad), self.squad_train, self.squad_dev, self.squad_test, self.squad_split),
        }

    def chosen(self, folder: Path) -> dict[Path, Path]:
        """The user's files that are read, by what each is called in `folder`."""
        found = {}
        for part in PARTS:
            tokens, plain = text_path(Path(self.text), part), Path(self.text) / f"{part}.txt"
            found[text_path(running_text(folder), part)] = plain if plain.is_file() and not tokens.is_file() else tokens
        for task, path in (("sst2", sentences_path), ("squad", questions_path)):
            found |= {path(folder, part): source for part, source in self.tasks[task].parts.items()}
        return found


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


def _require_within(settings: Section, *keys: str) -> None:
    """Each names a file in its folder: DVC sees no change of another."""
    for key in keys:
        path = Path(getattr(settings, key) or "")
        inside = not path.is_absolute() and ".." not in path.parts
        require(inside, key, str(path), "expected a file in the folder")


FOLDER = Field(description="relative to the project")
PUBLISHED = Field(default=None, description="where the files are given out; named where they are missing")


class QuestionsSettings(SplitSettings):
    """A further question-answering set in SQuAD's format, version 1.1 or 2.0; train, dev and test are files."""

    folder: str = FOLDER
    published: str | None = PUBLISHED

    @model_validator(mode="after")
    def _within(self) -> Self:
        _require_within(self, *self.parts)
        return self


class ClassificationSettings(TaskSettings):
    """A task in files; train, dev and test are their names."""

    folder: str = FOLDER
    published: str | None = PUBLISHED
    format: str | None = Field(default=None, description="tsv, csv, jsonl, parquet or xml; null: as the files end")

    @model_validator(mode="after")
    def _within(self) -> Self:
        _require_within(self, *self.parts)
        return self


class ClassificationParams(TaskParams):
    """What stages/sources/task.py reads of a classification task."""

    task: ClassificationSettings = Field(alias="data/params.yaml:classification.${key}")


class QuestionAnsweringParams(TaskParams):
    """What stages/sources/task.py reads of a question-answering set."""

    task: QuestionsSettings = Field(alias="data/params.yaml:question_answering.${key}")
