"""Atomic files: written to a temporary path, flushed, then renamed; and json.

A reader never sees half a file, whatever kills the writer. The next writer removes what a killed one left behind.
"""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from retrace.core.errors import InputError

COMMITTED_DIGITS = 6  # significant digits of figures in files that git keeps
STEADY_DIGITS = 12  # significant digits that every processor agrees on


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a path to write to; it becomes `path` on success and is removed on failure."""
    temporary = _temporary(path)
    try:
        yield temporary
        _flush(temporary)
        temporary.replace(path)
        _flush(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder to fill; it becomes `path`, replacing what was there, on success only."""
    temporary = _temporary(path)
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        yield temporary
        for entry in sorted(temporary.rglob("*")):
            _flush(entry)
        _flush(temporary)
        shutil.rmtree(path, ignore_errors=True)
        temporary.replace(path)
        _flush(path.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text atomically."""
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Write indented json, keys in the order given.

    Raises ValueError for NaN or infinity, which json does not have.
    """
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def rounded(value: Any, digits: int = COMMITTED_DIGITS) -> Any:
    """Round all floats in nested dicts and lists to significant digits.

    Processors and libraries sum in different orders, which changes the last two or three of a float's sixteen digits.
    So it is rounded to twelve first: 13/128 = 0.1015625 lies halfway between two numbers of six digits, and a figure
    that is a little lower on another processor must not be rounded the other way.
    """
    if isinstance(value, dict):
        return {name: rounded(each, digits) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(each, digits) for each in value]
    return float(f"{float(f'{value:.{STEADY_DIGITS}g}'):.{digits}g}") if isinstance(value, float) else value


def read_json(path: Path) -> Any:
    """Read a whole file of json.

    Raises FileNotFoundError where the file is absent, InputError where it is not json.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path}: not json: {error}") from None


def read_object(path: Path) -> dict[str, Any]:
    """Read a json object.

    Raises FileNotFoundError where the file is absent, InputError where it holds anything else.
    """
    found = read_json(path)
    if not isinstance(found, dict):
        raise InputError(f"{path}: expected a json object, found {type(found).__name__}")
    return found


def size(count: int) -> str:
    """A number of bytes in MiB or GiB."""
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"


def _temporary(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.with_name(f".{path.name}.partial")


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
