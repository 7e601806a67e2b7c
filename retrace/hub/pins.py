"""Pinned repositories of the hub, and the checkpoints to start from.

A checkpoint is `model.checkpoint` in params.yaml or `checkpoints.<name>` in data/params.yaml.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from pydantic import Field, model_validator

from retrace.core.errors import InputError
from retrace.core.files import file_digest
from retrace.core.settings import DATA_PARAMS, NAME, Params, Section, Seed, file_of

PINNED = "expected org/name@commit, the commit as 40 hex digits"
_NAME = r"\w(?:[\w.-]{0,94}\w)?"
REPOSITORY = re.compile(rf"(?!.*(?:--|\.\.))(?:{_NAME}/)?{_NAME}(?<!\.git)", re.ASCII)  # the hub's rule
PIN = re.compile(rf"{REPOSITORY.pattern}@[0-9a-f]{{40}}", re.ASCII)  # as in PINNED


@dataclass(frozen=True)
class Pin:
    """A repository at a commit; not at a branch or tag, since these move."""

    repository: str
    commit: str

    @classmethod
    def parse(cls, text: str, place: str) -> "Pin":
        """The pin written as org/name@commit.

        Raises InputError, beginning with `place`, if the text is not a pin.
        """
        if not PIN.fullmatch(text):
            raise InputError(f"{place}: {text!r} is not allowed; {PINNED}")
        return cls(*text.split("@"))

    def __str__(self) -> str:
        return f"{self.repository}@{self.commit}"


class CheckpointSettings(Section):
    """A checkpoint that a fine-tuning method starts from."""

    family: str = Field(description="its architecture, a file of retrace/families")
    checkpoint: str = Field(description="org/name@commit of the hub or folder@digest")
    random_seed: Seed | None = Field(
        default=None, description="replace the weights by random ones from this seed, keeping tokenizer and sizes"
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

    @classmethod
    def read(cls, params: Mapping[str, Any] | None = None, **item: str) -> Self:
        """Read and check the settings of the checkpoint called `key`, and that name.

        Raises InputError if either is wrong.
        """
        key = f"checkpoints.{item['key']}"
        if not NAME.fullmatch(item["key"]):  # it is the name of a folder, which the stage replaces
            raise InputError(f"{DATA_PARAMS}: {key}: the name is not allowed; expected letters, digits, _ and -")
        return super().read(params, **item)


@dataclass(frozen=True)
class PinnedFolder:
    """A folder, and the digest of its files."""

    path: Path
    digest: str

    def __str__(self) -> str:
        return f"{self.path}@{self.digest}"


@dataclass(frozen=True)
class InitialCheckpoint:
    """A model to start from."""

    origin: Pin | PinnedFolder | None  # None: random weights, with the sizes in params.yaml
    family: str
    seed: int | None = None  # replaces the weights by random ones; only tokenizer and sizes are the checkpoint's
    family_key: str = "family"  # where the settings give the family
    settings: Mapping[str, Any] = field(default_factory=dict)  # what was read, by key


def read_initial_checkpoint(params: Mapping[str, Any], name: str | None = None) -> InitialCheckpoint:
    """The checkpoint under `checkpoints.<name>`, or that under `model` if the name is None.

    Raises InputError unless it is a commit of the hub or a folder with its present digest.
    """
    if name is None:
        read = asked = ModelParams.read(params)
        key, family_key = "model.checkpoint", "family"
    else:
        read = CheckpointParams.read(params, key=name)
        asked, key, family_key = read.entry, f"checkpoints.{name}.checkpoint", f"checkpoints.{name}.family"
    return InitialCheckpoint(_origin(asked.checkpoint, key), asked.family, asked.random_seed, family_key, read.settings)


def _origin(value: str | None, key: str) -> Pin | PinnedFolder | None:
    if value is None:
        return None
    if PIN.fullmatch(value):
        return Pin(*value.split("@"))
    named, _, digest = value.rpartition("@")
    path = Path(named) if named and Path(named).is_dir() else Path(value)
    if not value or not path.is_dir():
        raise InputError(
            f"{file_of(key)}: {key}: {value!r} is not allowed; expected org/name@commit, all 40 digits of it, "
            "or folder@digest of a folder that exists"
        )
    found = PinnedFolder(path, folder_digest(path))
    if path == Path(value):
        raise InputError(f"{file_of(key)}: {key}: {value!r} has no digest; expected {found}")
    if digest != found.digest:
        raise InputError(f"{file_of(key)}: {key}: {value!r} does not match the folder, which is now {found}")
    return found


def folder_digest(folder: Path) -> str:
    """The first 12 hex digits of the SHA-256 of sorted lines, one per file: its path in the folder, its own SHA-256.

    Hidden files are left out.
    """
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    lines = "".join(f"{name} {file_digest(folder / name)}\n" for name in names if "/." not in f"/{name}")
    return hashlib.sha256(lines.encode(errors="surrogateescape")).hexdigest()[:12]  # a name may not be UTF-8
