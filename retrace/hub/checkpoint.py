"""Where a model to start from is to be had, pinned so that it stays the same.

`model.from` in params.yaml says it of the model that pretraining starts from, `models.<name>.from` of others, which
methods of tuning start from.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retrace.core.errors import InputError
from retrace.core.guard import file_digest
from retrace.core.settings import PARAMS, check_value, section
from retrace.hub.repository import Pin, is_pin

KEY, NAMED = "model", "models"
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
    """What params.yaml says under `models.<name>`, or under `model` where None.

    Raises InputError where that is neither a commit of the hub nor a folder as it is now.
    """
    key = KEY if name is None else f"{NAMED}.{name}"
    said, allowed = section(params, key), ["from", "random", *([] if name is None else ["family"])]
    unknown = [other for other in said if other not in allowed]
    if unknown:
        raise InputError(f"{PARAMS}: {key}.{unknown[0]}: unknown key; allowed: {', '.join(allowed)}")
    origin = _origin(params, f"{key}.from")
    seed = check_value(params, f"{key}.random", int | None) if "random" in said else None
    if origin is None and (name is not None or seed is not None):
        raise InputError(f"{PARAMS}: {key}.from: nothing is named; expected org/name@commit or folder@digest")
    return InitialCheckpoint(origin, check_value(params, "family" if name is None else f"{key}.family", str), seed)


def _origin(params: Mapping[str, Any], key: str) -> Pin | PinnedFolder | None:
    value = check_value(params, key, str | None)
    if value is None:
        return None
    if is_pin(value):
        return Pin.parse(value, key)
    named, _, digest = value.rpartition("@")
    path = Path(named) if named and Path(named).is_dir() else Path(value)
    if not value or not path.is_dir():
        raise InputError(
            f"{PARAMS}: {key}: {value!r} is not allowed; expected org/name@commit, all 40 digits of it, "
            "or folder@digest of a folder that is there"
        )
    found = PinnedFolder(path, folder_digest(path))
    if digest != found.digest:
        raise InputError(f"{PARAMS}: {key}: {value!r} is not the folder as it is now; that is {found}")
    return found


def folder_digest(folder: Path) -> str:
    """The first digits of the SHA-256 of a line for each file, sorted: its name in the folder and its own SHA-256.

    Hidden files are left out.
    """
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    seen = [name for name in names if not any(part.startswith(".") for part in name.split("/"))]
    lines = "".join(f"{name} {file_digest(folder / name)}\n" for name in seen)
    return hashlib.sha256(lines.encode()).hexdigest()[:DIGITS]
