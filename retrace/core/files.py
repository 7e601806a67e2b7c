"""Atomic files: written to a temporary path, flushed, then renamed; and json.

A reader never sees half a file, whatever kills the writer. The next writer removes what a killed one left behind. The
last file of a folder lists the SHA-256 of the others, by which a reader notices what a disk or a program damaged.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from retrace.core.errors import FULL, InputError

COMMITTED_DIGITS = 6  # significant digits of figures in files that git keeps
SUMS = ".SHA256SUMS"  # hidden from those who list a folder; `sha256sum -c` reads it
STEADY_DIGITS = 12  # significant digits that every processor agrees on


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a path to write to; it becomes `path` on success and is removed on failure."""
    temporary = _temporary(path)
    try:
        with _named_when_full(path, temporary):
            yield temporary
            _flush(temporary)
            temporary.replace(path)
            _flush(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: Path, summed: bool = False) -> Iterator[Path]:
    """Yield an empty folder to fill; it becomes `path`, replacing what was there, on success only.

    With `summed`, its last file is `SUMS`.
    """
    temporary = _temporary(path)
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        with _named_when_full(path, temporary):
            temporary.mkdir()
            yield temporary
            if summed:
                (temporary / SUMS).write_bytes(_sums(digests_under(temporary)))
            for entry in sorted(temporary.rglob("*")):
                _flush(entry)
            _flush(temporary)
            shutil.rmtree(path, ignore_errors=True)
            temporary.replace(path)
            _flush(path.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def file_digest(path: Path) -> str:
    """The SHA-256 of a file's bytes; of a gigabyte in a second."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digests_under(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file under a folder, by its path there."""
    return {str(path.relative_to(folder)): file_digest(path) for path in sorted(folder.rglob("*")) if path.is_file()}


def damaged(folder: Path, digests: Mapping[str, str]) -> Path | None:
    """A file that is another than when the folder was written, or `SUMS` where one is gone; None where none is.

    `digests` are those of `digests_under` the folder.
    """
    found = {name: digest for name, digest in digests.items() if name != SUMS}
    written = (folder / SUMS).read_bytes()
    if written == _sums(found):
        return None
    lines = written.decode(errors="replace").splitlines()
    listed = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    wrong = [name for name in sorted(found) if found[name] != listed.get(name)]
    return folder / (wrong[0] if wrong else SUMS)


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
    """A number of bytes in KiB, MiB or GiB."""
    if count < 2**20:
        return f"{count / 2**10:.0f} KiB"
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"


def _sums(digests: Mapping[str, str]) -> bytes:
    """Digests as sha256sum writes them."""
    return "".join(f"{digests[name]}  {name}\n" for name in sorted(digests)).encode()


@contextmanager
def _named_when_full(path: Path, temporary: Path) -> Iterator[None]:
    """Raise an OSError that names the file where a disk is full, however the library that wrote it says so."""
    try:
        yield
    except Exception as error:
        number = error.errno if isinstance(error, OSError) else None
        found = next((full for full in FULL if full == number or f"(os error {full})" in str(error)), None)
        if found is None or getattr(error, "filename", None):
            raise
        written = sum(file.stat().st_size for file in [temporary, *temporary.rglob("*")] if file.is_file())
        state = f"{size(written)} of it were written and {size(shutil.disk_usage(path.parent).free)} are free"
        raise OSError(found, f"{os.strerror(found)}; {state}", str(path)) from error


def _temporary(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.with_name(f".{path.name}.partial")


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
