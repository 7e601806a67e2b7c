"""Where the user's own files are: those of the data source, and those of further tasks."""

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from retrace.core.errors import InputError
from retrace.core.paths import OWN, questions_path
from retrace.core.settings import DATA_PARAMS, Section, require
from retrace.datasets.settings import SourceParams, SplitSettings, TaskParams, TaskSettings
from retrace.datasets.source import Source
from retrace.datasets.text import PARTS, text_path

WATCHED = f"expected a folder in {OWN}, the only one that DVC watches"


def _is_own(folder: str) -> bool:
    return Path(folder).is_relative_to(OWN) and ".." not in Path(folder).parts


class TaskFiles(SplitSettings):
    """A task in files; train, dev and test are their names. Questions, in SQuAD's format, need no further settings."""

    folder: str = Field(description="in data/own; of a further task also an absolute path")
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
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        what = f"{folder / missing[0]}: no such file" if folder.is_dir() else f"{str(folder)!r} is not a folder"
        where = f", published at {settings.published}" if settings.published else ""
        raise InputError(f"{DATA_PARAMS}: {key}: {what}; put {', '.join(names)} into {folder}{where}")


class FilesSettings(Section):
    """The files of the data source."""

    text: str = Field(description="folder of wiki.{train,valid,test}.tokens, or {train,valid,test}.txt")
    sst2: TaskFiles
    squad: TaskFiles

    def copies(self, source: Source) -> dict[Path, Path]:
        """The user's running text and questions, by the path of each file's copy."""
        found = {}
        for part in PARTS:
            tokens, plain = text_path(Path(self.text), part), Path(self.text) / f"{part}.txt"
            found[text_path(source.text, part)] = plain if plain.is_file() and not tokens.is_file() else tokens
        return found | {questions_path(source.squad, part): own for part, own in self.squad.paths.items()}


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

    format: str | None = Field(default=None, description="tsv, csv, jsonl, parquet or xml; null: by the files' suffix")


class ClassificationParams(TaskParams):
    """What stages/sources/task.py reads of a classification task."""

    task: ClassificationSettings = Field(alias="data/params.yaml:classification.${key}")


class QuestionAnsweringParams(TaskParams):
    """What stages/sources/task.py reads of a question-answering set."""

    task: TaskFiles = Field(alias="data/params.yaml:question_answering.${key}")
