"""Files that are either whole or absent: written aside, flushed to the disk, then renamed.

A reader never sees half a file, whatever kills the writer. What a killed writer left aside is
removed by the next one.
"""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from retrace.core.errors import InputError

ASIDE = ".partial"
COMMITTED_DIGITS = 6  # significant ones, of figures in files that git keeps
STEADY_DIGITS = 12  # that every processor agrees on, of figures in files whose hashes git keeps


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a path to write to; it becomes `path` on success and is removed on failure."""
    aside = _aside(path)
    try:
        yield aside
        _flush(aside)
        aside.replace(path)
        _flush(path.parent)
    finally:
        aside.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder to fill; it becomes `path`, replacing what was there, on success only."""
    aside = _aside(path)
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir()
    try:
        yield aside
        for entry in sorted(aside.rglob("*")):
            _flush(entry)
        _flush(aside)
        shutil.rmtree(path, ignore_errors=True)
        aside.replace(path)
        _flush(path.parent)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text as a whole or not at all."""
    with atomic_file(path) as aside:
        aside.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Write readable json, keys in the order given; not-a-number is an error, never a value."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def rounded(value: Any, digits: int = COMMITTED_DIGITS) -> Any:
    """Figures within names and lists, to so many significant digits; whole numbers and texts as they are.

    Processors and libraries sum in other orders, which changes the last two or three of a figure's sixteen
    digits. Twelve are cut first: a figure such as 13/128 = 0.1015625 lies on the border between two of six
    digits, and is rounded the same way from just below it.
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
    """Read a file of json that others wrote.

    Raises FileNotFoundError where the file is absent, InputError where it holds no names and values.
    """
    found = read_json(path)
    if not isinstance(found, dict):
        raise InputError(f"{path}: expected names and values, found {type(found).__name__}")
    return found


def _aside(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.with_name(f".{path.name}{ASIDE}")


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
