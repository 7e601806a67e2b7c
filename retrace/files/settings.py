"""Where the user's own files are: those of the data source, and those of further tasks."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from retrace.core.errors import InputError
from retrace.core.files import file_fault
from retrace.core.paths import OWN, questions_path
from retrace.core.settings import DATA_PARAMS, Section, require
from retrace.datasets.settings import SourceParams, SplitSettings, TaskParams, TaskSettings
from retrace.datasets.source import Source
from retrace.datasets.text import PARTS, text_path

# The names of the files of running text: WikiText's, and those of plain text.
TEXT_NAMES = tuple(text_path(Path(), part).name for part in PARTS), tuple(f"{part}.txt" for part in PARTS)
WATCHED = f"expected a folder in {OWN}, the only one that DVC watches"


def _is_own(folder: str) -> bool:
    return Path(folder).is_relative_to(OWN) and ".." not in Path(folder).parts


class TaskFiles(SplitSettings):
    """A task in files; train, dev and test are their names. Questions, in SQuAD's format, need no further settings."""

    folder: str = Field(description="the folder of the files, in data/own; for a further task also an absolute path")
    published: str | None = Field(
        default=None, description="where the files can be downloaded, for the message about a missing one"
    )

    @model_validator(mode="after")
    def _within(self) -> Self:
        for part, name in self.parts.items():
            # DVC watches the folder only.
            is_inside = bool(name) and not Path(name).is_absolute() and ".." not in Path(name).parts
            require(is_inside, part, name, "expected a file in the folder")
        allowed = f"{WATCHED}, or an absolute path"
        require(Path(self.folder).is_absolute() or _is_own(self.folder), "folder", self.folder, allowed)
        return self

    @property
    def paths(self) -> dict[str, Path]:
        """The file of each split."""
        return {part: Path(self.folder) / name for part, name in self.parts.items()}


def check_files(settings: TaskFiles, key: str) -> None:
    """Raise an InputError that says which files to put where, unless all files of a task are there."""
    folder, names = Path(settings.folder), list(dict.fromkeys(settings.parts.values()))
    if what := _lacking(folder, names):
        where = f", published at {settings.published}" if settings.published else ""
        raise InputError(f"{DATA_PARAMS}: {key}: {what}; put {', '.join(names)} into {folder}{where}")


def _lacking(folder: Path, names: Sequence[str]) -> str | None:
    """What is wrong if not all of these files are in a folder."""
    if not folder.is_dir():
        return f"{str(folder)!r} is not a folder"
    faults = ((folder / name, file_fault(folder / name)) for name in names)
    return next((f"{path}: {fault}" for path, fault in faults if fault), None)


class FilesSettings(Section):
    """The files of the data source."""

    text: str = Field(description="folder of wiki.{train,valid,test}.tokens, or {train,valid,test}.txt")
    sst2: TaskFiles
    squad: TaskFiles

    def copies(self, source: Source) -> dict[Path, Path]:
        """The user's running text and questions, by the path of each file's copy."""
        folder = Path(self.text)
        names = next(iter(text_kinds(folder)), TEXT_NAMES[0])
        found = {text_path(source.text, part): folder / name for part, name in zip(PARTS, names, strict=True)}
        return found | {questions_path(source.squad, part): own for part, own in self.squad.paths.items()}


def text_kinds(folder: Path) -> list[tuple[str, ...]]:
    """Which of TEXT_NAMES a folder has files of."""
    return [names for names in TEXT_NAMES if any((folder / name).exists() for name in names)]


def check_text(settings: FilesSettings) -> None:
    """Raise an InputError that says what to put where, unless the folder has all running text, in files of one kind."""
    folder, key = Path(settings.text), f"{DATA_PARAMS}: files.text"
    kinds = text_kinds(folder)
    if len(kinds) > 1:
        one, other = (next(name for name in names if (folder / name).exists()) for names in kinds)
        raise InputError(f"{key}: {folder} has both {one} and {other}; expected files of one kind")
    expected = kinds or TEXT_NAMES
    if what := _lacking(folder, expected[0]):
        raise InputError(f"{key}: {what}; put {' or '.join(map(', '.join, expected))} into {folder}")


class FilesParams(SourceParams):
    """What stages/sources/files.py reads."""

    files: FilesSettings = Field(alias="data/params.yaml:files")

    @model_validator(mode="after")
    def _within_own(self) -> Self:
        files = self.files
        named = {"text": files.text, "sst2.folder": files.sst2.folder, "squad.folder": files.squad.folder}
        for key, folder in named.items():
            require(_is_own(folder), f"files.{key}", folder, WATCHED)
        return self


class ClassificationSettings(TaskFiles, TaskSettings):
    """A classification task in files."""

    format: Literal["tsv", "csv", "jsonl", "parquet", "xml"] | None = Field(
        default=None, description="format of the files; null: by their suffix"
    )


class ClassificationParams(TaskParams):
    """What stages/sources/task.py reads of a classification task."""

    task: ClassificationSettings = Field(alias="data/params.yaml:classification.${key}")


class QuestionAnsweringParams(TaskParams):
    """What stages/sources/task.py reads of a question-answering set."""

    task: TaskFiles = Field(alias="data/params.yaml:question_answering.${key}")
