"""Where a model to start from is to be had: `model.from` in params.yaml, pinned so that it stays the same."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stages.harness.errors import InputError
from stages.harness.guard import file_digest
from stages.harness.hub import Pin, is_pin
from stages.harness.settings import PARAMS, check_value, section

KEY = "model.from"
DIGITS = 12


@dataclass(frozen=True)
class PinnedFolder:
    """A folder whose files have the digest that params.yaml says."""

    path: Path
    digest: str

    def __str__(self) -> str:
        return f"{self.path}@{self.digest}"


def read_origin(params: Mapping[str, Any]) -> Pin | PinnedFolder | None:
    """What params.yaml says; None where training starts from random weights.

    Raises InputError where it names neither a commit of the hub nor a folder as it is now.
    """
    unknown = [name for name in section(params, "model") if name != "from"]
    if unknown:
        raise InputError(f"{PARAMS}: model.{unknown[0]}: unknown key; allowed: from")
    value = check_value(params, KEY, str | None)
    if value is None:
        return None
    if is_pin(value):
        return Pin.parse(value, KEY)
    named, _, digest = value.rpartition("@")
    path = Path(named) if named and Path(named).is_dir() else Path(value)
    if not value or not path.is_dir():
        raise InputError(
            f"{PARAMS}: {KEY}: {value!r} is not allowed; expected org/name@commit, all 40 digits of it, "
            "or folder@digest of a folder that is there"
        )
    found = PinnedFolder(path, folder_digest(path))
    if digest != found.digest:
        raise InputError(f"{PARAMS}: {KEY}: {value!r} is not the folder as it is now; that is {found}")
    return found


def folder_digest(folder: Path) -> str:
    """The first digits of the SHA-256 of a line for each file, sorted: its name in the folder and its own SHA-256.

    Hidden files are left out.
    """
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    seen = [name for name in names if not any(part.startswith(".") for part in name.split("/"))]
    lines = "".join(f"{name} {file_digest(folder / name)}\n" for name in seen)
    return hashlib.sha256(lines.encode()).hexdigest()[:DIGITS]
