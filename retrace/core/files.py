"""Atomic files: written to a temporary path, flushed, then renamed; lines and json, read with the place of each error.

A reader never sees half a file, whatever kills the writer. The next writer removes what a killed one left behind. A
folder may list the SHA-256 of its files, by which readers notice damage.
"""

import hashlib
import json
import math
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

from retrace.core.errors import FULL, InputError

COMMITTED_DIGITS = 6  # significant digits of figures in files that git keeps
SUMS = ".SHA256SUMS"  # as `sha256sum -c` reads it
STEADY_DIGITS = 12  # significant digits that every processor agrees on
_CACHED = re.compile(r"/files/md5/[0-9a-f]{2}/[0-9a-f]{30}$")  # a path in DVC's cache
_NUL = "\0"
_SYSTEM_ERROR = re.compile(r"(?:\(os error |\[Errno )(\d+)")  # in messages of Rust libraries and of shutil.copytree
_ESCAPED_HALF = re.compile(r"\\u[dD][89a-fA-F]")  # a surrogate, alone or in a pair
# The escapes of json: a surrogate pair; half of one, as a group; any other.
_ESCAPES = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(\\u[dD][89a-fA-F]..)|\\.")


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a path to write to, a file or a folder; it becomes `path` on success and is removed on failure.

    If `path` is a link, the target of the link is replaced. A link into DVC's cache, as `cache.type symlink` makes, is
    replaced itself, since the file there belongs to every version of the project with this content.
    """
    if path.is_symlink() and not _CACHED.search(str(path.resolve())):
        path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary, former = path.with_name(f".{path.name}.partial"), path.with_name(f".{path.name}.former.partial")
    try:
        if temporary.is_symlink():  # what is written would go elsewhere
            temporary.unlink()
        with _named(path, temporary):
            yield temporary
            for entry in (*sorted(temporary.rglob("*")), temporary):
                _flush(entry)
            if temporary.is_dir() and path.is_dir():
                shutil.rmtree(former, ignore_errors=True)
                path.replace(former)  # as a whole: without its list of digests, a damaged folder would pass as intact
            temporary.replace(path)
            _flush(path.parent)
    finally:
        if former.is_dir() and not path.exists():  # interrupted in between
            former.replace(path)
        shutil.rmtree(former, ignore_errors=True)
        shutil.rmtree(temporary, ignore_errors=True)
        with suppress(OSError):  # such as a read-only disk
            temporary.unlink()


@contextmanager
def atomic_folder(path: Path, summed: bool = False) -> Iterator[Path]:
    """Yield an empty folder to fill; it becomes `path`, replacing what was there, on success only.

    With `summed`, it also gets `SUMS`.
    """
    with atomic_file(path) as temporary:
        shutil.rmtree(temporary, ignore_errors=True)  # of a writer that was killed
        temporary.mkdir()
        yield temporary
        if summed:
            (temporary / SUMS).write_bytes(_sums(temporary, file_digests([temporary])))


def file_digest(path: Path, kind: str = "sha256") -> str:
    """The SHA-256 of a file's bytes, or another digest by hashlib's name."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()


def file_digests(paths: Iterable[Path]) -> dict[str, str]:
    """The SHA-256 of the files among `paths` and under them, by path."""
    every = dict.fromkeys(file for path in paths for file in (sorted(path.rglob("*")) if path.is_dir() else [path]))
    return {str(file): file_digest(file) for file in every if file.is_file()}


def damaged(folder: Path, digests: Mapping[str, str]) -> Path | None:
    """The first file that changed since it was written, or `SUMS` if a file is gone; None if the folder is intact.

    `digests` come from `file_digests`, for this folder and perhaps others.
    """
    written, now = (folder / SUMS).read_bytes(), _sums(folder, digests)
    changed = sorted(set(now.splitlines()) - set(written.splitlines()), key=_name_in)
    if changed:
        return folder / _name_in(changed[0])
    return None if now == written else folder / SUMS


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
    So floats are rounded to twelve first: 13/128 = 0.1015625 lies halfway between two numbers of six digits, and a
    figure a little lower on another processor must not be rounded the other way.
    """
    if isinstance(value, dict):
        return {name: rounded(each, digits) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(each, digits) for each in value]
    return float(f"{float(f'{value:.{STEADY_DIGITS}g}'):.{digits}g}") if isinstance(value, float) else value


def file_fault(path: Path) -> str | None:
    """Why a path cannot be read, for example because it is a folder; None if it is a file."""
    if path.is_file():
        return None
    if path.is_dir():
        return "it is a folder; expected a file"
    return "it is not a regular file" if path.exists() else "no such file"


def require_file(path: Path) -> None:
    """Raise InputError if there is no such file, or something else is there."""
    if fault := file_fault(path):
        raise InputError(f"{path}: {fault}")


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Read a UTF-8 file line by line: line numbers from 1, and lines without line breaks.

    Raises InputError if the file is missing or empty, or a line is not UTF-8 or contains a NUL, as UTF-16 does.
    """
    require_file(path)
    if path.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty")
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                before, after = error.object[: error.start], error.object[error.start :]  # without a byte order mark
                place = f"{path}:{number}:{len(before.decode(errors='replace')) + 1}"
                byte = f"0x{after[0]:02x}"
                raise InputError(f"{place}: byte {byte} is not UTF-8; save the file as UTF-8") from None
            if _NUL in line:
                raise InputError(f"{path}:{number}:{line.index(_NUL) + 1}: a NUL; save the file as UTF-8")
            yield number, line.rstrip("\r\n")


def read_json(path: Path) -> Any:
    """The value in a json file.

    Raises FileNotFoundError if the file is absent, InputError naming the place where it is not json.
    """
    return parse_json(read_text(path), path)


def read_text(path: Path) -> str:
    """A file's text, with `\\n` for every line break.

    Raises FileNotFoundError if the file is absent, InputError if it is empty or not UTF-8.
    """
    path.stat()
    return "\n".join(line for _, line in numbered_lines(path))


def parse_json(text: str, path: Path, line: int = 1) -> Any:
    """Parse the json that starts at a line of a file.

    Raises InputError naming file, line and column where it is not json, a key occurs twice in an object, or a text
    contains half a surrogate pair.
    """
    try:
        found = json.loads(text, object_pairs_hook=_once, parse_constant=_refuse, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{line + error.lineno - 1}:{error.colno}: not json: {error.msg}") from None
    except (InputError, RecursionError, ValueError) as error:  # also nested too deeply, or a number of too many digits
        raise InputError(f"{path}:{line}: not json: {error}") from None
    if _ESCAPED_HALF.search(text):
        _require_pairs(text, path, line)
    return found


def _require_pairs(text: str, path: Path, line: int) -> None:
    """Raise InputError naming the line of the first escape in json that is half of a surrogate pair."""
    half = next((found for found in _ESCAPES.finditer(text) if found[1]), None)
    if half:
        line += text.count("\n", 0, half.start())
        said = f"'{half[1].lower()}' is an unpaired surrogate; save the file as UTF-8"
        raise InputError(f"{path}:{line}: {said}")


def _refuse(constant: str) -> NoReturn:
    raise InputError(f"{constant} is not a number")


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse(text)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these keys and values, each key once; by itself json.loads silently keeps the last of each."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise InputError(f"the key {repeated(name for name, _ in pairs)!r} occurs twice in an object")
    return found


def repeated(names: Iterable[str]) -> str | None:
    """The first of the names that occur twice or more, None if there is none; a file may have a million names."""
    return next((name for name, count in Counter(names).items() if count > 1), None)


def read_object(path: Path) -> dict[str, Any]:
    """Read a json object.

    Raises FileNotFoundError if the file is absent, InputError if it holds anything else.
    """
    found = read_json(path)
    if not isinstance(found, dict):
        raise InputError(f"{path}: expected a json object, found {type(found).__name__}")
    return found


def size(count: int) -> str:
    """A number of bytes in KiB, MiB or GiB."""
    if count < 2**20:
        return f"{count / 2**10:.0f} KiB"
    return f"{count / 2**30:,.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"


def _sums(folder: Path, digests: Mapping[str, str]) -> bytes:
    """The digests of the files in a folder as sha256sum writes them, without `SUMS` itself."""
    inside = {str(Path(path).relative_to(folder)): path for path in digests if Path(path).is_relative_to(folder)}
    lines = (f"{digests[inside[name]]}  {name}\n" for name in sorted(inside) if name != SUMS)
    return "".join(lines).encode(errors="surrogateescape")  # a name may not be UTF-8


def _name_in(line: bytes) -> str:
    """The file that a line of `SUMS` is about."""
    return line.decode(errors="surrogateescape").partition("  ")[2]


@contextmanager
def _named(path: Path, temporary: Path) -> Iterator[None]:
    """Turn whatever a library raises when a write fails into an OSError that names the file."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and not isinstance(error, shutil.Error):
            # A copy names its source first; what is full is the disk of its target.
            number, files = error.errno, [error.filename, error.filename2 if error.errno in FULL else None]
        else:
            found = _SYSTEM_ERROR.search(str(error))
            number, files = found and int(found[1]), list[Any]()
        named = [Path(file) for file in files if file is not None]
        if number is None or (named and not any(file.is_relative_to(temporary) for file in named)):
            raise
        reason = os.strerror(number)
        if number in FULL:
            written = sum(file.stat().st_size for file in [temporary, *temporary.rglob("*")] if file.is_file())
            reason += f"; {size(written)} of it was written and {size(shutil.disk_usage(path.parent).free)} is free"
        raise OSError(number, reason, str(path)) from error


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
