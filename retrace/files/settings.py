"""Where the user's own files are: those of the data source, and those of further tasks."""

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from retrace.core.paths import OWN, questions_path, running_text, sentences_path
from retrace.core.settings import Params, Section, Split, require
from retrace.datasets.settings import SplitBy, SplitSettings, TaskParams, TaskSettings
from retrace.datasets.text import PARTS, text_path


class FilesSettings(Section):
    """Where the user's files are; folders relative to the project."""

    text: str = Field(description="folder of wiki.{train,valid,test}.tokens, or {train,valid,test}.txt")
    sst2: str = Field(description="folder of train.tsv and dev.tsv with the columns sentence and label")
    squad: str = Field(description="folder of the questions")
    squad_train: str = Field(default="train-v2.0.json", description="file in squad, version 1.1 or 2.0")
    squad_dev: str = Field(default="dev-v2.0.json", description="file in squad")
    sst2_test: str | None = Field(
        default=None, description="a labelled test set in sst2, scored once and never used to choose the epoch"
    )
    squad_test: str | None = Field(default=None, description="the same in squad")
    sst2_split: Split | None = Field(
        default=None,
        description="train on this share of train.tsv and validate on the rest; dev.tsv, if any, is the test set then",
    )
    squad_split: Split | None = Field(default=None, description="the same for squad_train")
    split_seed: int = Field(default=1, description="seed of the split")
    split_by: SplitBy = Field(
        default="text",
        description="phrases of a sentence, and questions on a passage, stay together; row: they may be separated",
    )

    @model_validator(mode="after")
    def _other_tests(self) -> Self:
        _require_within(self, "squad_train", "squad_dev", "sst2_test", "squad_test")
        for task, (train, dev, test, split) in self._files.items():
            taken = (train, dev) if split is None else (train,)
            require(test not in taken, f"{task}_test", test, f"expected another file than {' and '.join(taken)}")
        is_trained_on = self.squad_split is not None and self.squad_dev == self.squad_train  # yet would be the test set
        require(not is_trained_on, "squad_dev", self.squad_dev, "expected another file than squad_train")
        return self

    @property
    def _files(self) -> dict[str, tuple[str, str, str | None, float | None]]:
        """Train, dev and test of each task, and the share of train that is trained on."""
        return {
            "sst2": ("train.tsv", "dev.tsv", self.sst2_test, self.sst2_split),
            "squad": (self.squad_train, self.squad_dev, self.squad_test, self.squad_split),
        }

    @property
    def tasks(self) -> dict[str, SplitSettings]:
        """The files of each task, by name.

        Where dev is held out of train, the official dev file, if there is one, is the test set.
        """
        found = {}
        for task, (train, dev, test, split) in self._files.items():
            if split is not None:
                test = test or (dev if (Path(getattr(self, task)) / dev).is_file() else None)
                dev = None
            by, seed = self.split_by, self.split_seed
            found[task] = SplitSettings(train=train, dev=dev, test=test, split=split, split_by=by, split_seed=seed)
        return found

    def chosen(self, folder: Path) -> dict[Path, Path]:
        """The user's files that are read, by the path of each one's copy in `folder`."""
        found = {}
        for part in PARTS:
            tokens, plain = text_path(Path(self.text), part), Path(self.text) / f"{part}.txt"
            found[text_path(running_text(folder), part)] = plain if plain.is_file() and not tokens.is_file() else tokens
        for task, path in (("sst2", sentences_path), ("squad", questions_path)):
            own = Path(getattr(self, task))
            found |= {path(folder, part): own / name for part, name in self.tasks[task].parts.items()}
        return found


class FilesParams(Params):
    """What stages/sources/files.py reads."""

    files: FilesSettings = Field(alias="data/params.yaml:files")

    @model_validator(mode="after")
    def _within_own(self) -> Self:
        for name in ("text", "sst2", "squad"):
            folder = Path(getattr(self.files, name))
            allowed = f"expected a folder in {OWN}, the only one that DVC watches"
            require(folder.is_relative_to(OWN) and ".." not in folder.parts, f"files.{name}", str(folder), allowed)
        return self


def _require_within(settings: Section, *keys: str) -> None:
    """Each key names a file in its folder, the only one that DVC watches."""
    for key in keys:
        path = Path(getattr(settings, key) or "")
        inside = not path.is_absolute() and ".." not in path.parts
        require(inside, key, str(path), "expected a file in the folder")


class TaskFiles(SplitSettings):
    """A further task in files; train, dev and test are their names. Of questions, in SQuAD's format, this is all."""

    folder: str = Field(description="relative to the project")
    published: str | None = Field(
        default=None, description="where the files can be downloaded, for the message about a missing one"
    )

    @model_validator(mode="after")
    def _within(self) -> Self:
        _require_within(self, *self.parts)
        return self


class ClassificationSettings(TaskFiles, TaskSettings):
    """A classification task in files."""

    format: str | None = Field(default=None, description="tsv, csv, jsonl, parquet or xml; null: by the files' suffix")


class ClassificationParams(TaskParams):
    """What stages/sources/task.py reads of a classification task."""

    task: ClassificationSettings = Field(alias="data/params.yaml:classification.${key}")


class QuestionAnsweringParams(TaskParams):
    """What stages/sources/task.py reads of a question-answering set."""

    task: TaskFiles = Field(alias="data/params.yaml:question_answering.${key}")
