"""Where a model to start from is to be had, pinned so that it stays the same.

`model.checkpoint` in params.yaml names the one that pretraining starts from, `checkpoints.<name>` in data/params.yaml
those that fine-tuning methods start from.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retrace.core.errors import InputError
from retrace.core.guard import file_digest
from retrace.core.settings import file_of
from retrace.hub.settings import CheckpointParams, ModelParams, Pin, is_pin

NAMED = "checkpoints"
DIGITS = 12


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
    if name is None:
        own = ModelParams.read(params)
        return InitialCheckpoint(_origin(own.checkpoint, "model.checkpoint"), own.family, own.random_seed)
    entry = CheckpointParams.read(params, key=name).entry
    return InitialCheckpoint(_origin(entry.checkpoint, f"{NAMED}.{name}.checkpoint"), entry.family, entry.random_seed)


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
    seen = [name for name in names if not any(part.startswith(".") for part in name.split("/"))]
    lines = "".join(f"{name} {file_digest(folder / name)}\n" for name in seen)
    return hashlib.sha256(lines.encode()).hexdigest()[:DIGITS]
