"""What params.yaml and data/params.yaml say of the hub: pinned repositories, data sets, and checkpoints to start from.

Apart from what reads them, so that settings are checked without the hub's client, which takes long to import.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from retrace.core.errors import InputError
from retrace.core.files import file_digest
from retrace.core.settings import Count, Params, Section, Seed, file_of
from retrace.datasets.settings import SplitSettings

DIGITS = 12  # of a folder's digest
PINNED = "expected org/name@commit, the commit as 40 hex digits"
_PIN = re.compile(r"[\w.-]+(?:/[\w.-]+)?@[0-9a-f]{40}")


@dataclass(frozen=True)
class Pin:
    """A repository at a commit; a branch or tag may move and is none."""

    repository: str
    commit: str

    @classmethod
    def parse(cls, text: str, key: str) -> "Pin":
        """The pin that `key` in params.yaml holds.

        Raises InputError where it is none.
        """
        if not is_pin(text):
            raise InputError(f"{file_of(key)}: {key}: {text!r} is not allowed; {PINNED}")
        return cls(*text.split("@"))

    def __str__(self) -> str:
        return f"{self.repository}@{self.commit}"


def is_pin(text: str) -> bool:
    """Whether a text names a repository at a commit."""
    return _PIN.fullmatch(text) is not None


def _pinned(repository: str) -> str:
    if not is_pin(repository):
        raise ValueError(f"{repository!r} is not allowed; {PINNED}")
    return repository


class HubDataset(Section):
    """Which data set; a split is one of its own or, unless streamed, an expression such as train[:90%]."""

    repository: Annotated[str, AfterValidator(_pinned)] = Field(description="org/name@commit")
    config: str = Field(default="default", description="the data set's configuration")
    train: str = Field(default="train", description="the training split, or a part of one: train[:90%]")
    stream: Count | None = Field(default=None, description="read so many rows of each split and fetch no more")

    @property
    def pin(self) -> Pin:
        """The repository and its commit."""
        return Pin.parse(self.repository, "repository")


class HubText(HubDataset):
    """Running text."""

    valid: str = Field(default="validation", description="the validation split")
    test: str = Field(default="test", description="the test split")
    text: str = Field(default="text", description="the column")
    rows: Literal["lines", "documents"] = Field(
        default="documents", description="what a row is: a line, as in WikiText, or a document"
    )


class HubSplits(HubDataset, SplitSettings):
    """A data set with a validation split, or one that is drawn from its training split."""

    train: str = Field(default="train", description="the training split, or a part of one: train[:90%]")
    dev: str | None = Field(default="validation", description="the validation split; null with split")


class HubSentences(HubSplits):
    """Sentences of two classes, by number."""

    text: str = Field(default="sentence", description="the column of the sentence")
    label: str = Field(default="label", description="the column of the label, 0 or 1")


class HubQuestions(HubSplits):
    """Questions on passages, with SQuAD's columns."""

    id: str = Field(default="id", description="the column")
    title: str | None = Field(default="title", description="the column; null: there is none")
    context: str = Field(default="context", description="the column")
    question: str = Field(default="question", description="the column")
    answers: str = Field(default="answers", description="the column of text and answer_start, a list each")


class HubSettings(Section):
    """The data sets of the three parts of the data source, and further tasks, which have stages of their own."""

    text: HubText
    sst2: HubSentences
    squad: HubQuestions
    classification: dict[str, Any] = Field(default={}, description="further classification tasks, by name")


class HubParams(Params):
    """What stages/sources/hub.py reads."""

    hub: HubSettings = Field(alias="data/params.yaml:hub")


class CheckpointSettings(Section):
    """A checkpoint that a fine-tuning method starts from."""

    family: str = Field(description="its architecture, a file of retrace/families")
    checkpoint: str = Field(description="org/name@commit of the hub or folder@digest")
    random_seed: Seed | None = Field(
        default=None, description="draw the weights anew from this seed, so that only tokenizer and sizes count"
    )


class ModelParams(Params):
    """What stages/sources/model.py reads of the checkpoint that pretraining starts from."""

    family: str
    checkpoint: str | None = Field(alias="model.checkpoint")
    random_seed: Seed | None = Field(alias="model.random_seed")

    @model_validator(mode="after")
    def _draws_from_something(self) -> Self:
        if self.checkpoint is None and self.random_seed is not None:
            raise ValueError("model.random_seed: it needs model.checkpoint, whose sizes it takes")
        return self


class CheckpointParams(Params):
    """What stages/sources/model.py reads of a further checkpoint."""

    entry: CheckpointSettings = Field(alias="data/params.yaml:checkpoints.${key}")


@dataclass(frozen=True)
class PinnedFolder:
    """A folder whose files have the digest that params.yaml says."""

    path: Path
    digest: str

    def __str__(self) -> str:
        return f"{self.path}@{self.digest}"


@dataclass(frozen=True)
class InitialCheckpoint:
    """A model to start from."""

    origin: Pin | PinnedFolder | None  # None: random weights, of sizes that params.yaml says
    family: str
    seed: int | None = None  # draws the weights anew, so that tokenizer and sizes alone are the model's


def read_initial_checkpoint(params: Mapping[str, Any], name: str | None = None) -> InitialCheckpoint:
    """The checkpoint under `checkpoints.<name>`, or under `model` where None.

    Raises InputError where it is neither a commit of the hub nor a folder as it is now.
    """
    settings = ModelParams.read(params) if name is None else CheckpointParams.read(params, key=name).entry
    key = "model.checkpoint" if name is None else f"checkpoints.{name}.checkpoint"
    return InitialCheckpoint(_origin(settings.checkpoint, key), settings.family, settings.random_seed)


def _origin(value: str | None, key: str) -> Pin | PinnedFolder | None:
    if value is None:
        return None
    if is_pin(value):
        return Pin.parse(value, key)
    named, _, digest = value.rpartition("@")
    path = Path(named) if named and Path(named).is_dir() else Path(value)
    if not value or not path.is_dir():
        raise InputError(
            f"{file_of(key)}: {key}: {value!r} is not allowed; expected org/name@commit, all 40 digits of it, "
            "or folder@digest of a folder that is there"
        )
    found = PinnedFolder(path, folder_digest(path))
    if digest != found.digest:
        raise InputError(f"{file_of(key)}: {key}: {value!r} is not the folder as it is now; that is {found}")
    return found


def folder_digest(folder: Path) -> str:
    """The first digits of the SHA-256 of a line for each file, sorted: its name in the folder and its own SHA-256.

    Hidden files are left out.
    """
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    lines = "".join(f"{name} {file_digest(folder / name)}\n" for name in names if "/." not in f"/{name}")
    return hashlib.sha256(lines.encode()).hexdigest()[:DIGITS]
