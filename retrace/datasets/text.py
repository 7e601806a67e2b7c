"""Running text, as WikiText or plain, read document by document; lines, tables and json, each error with its place."""

import csv
import json
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from retrace.core.errors import InputError

_ESCAPED_HALF = re.compile(r"\\u[dD][89a-fA-F]")  # of a character beyond 16 bits, if the other half stands beside it


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Read a UTF-8 file line by line: line numbers from 1, and lines without line breaks.

    Raises InputError where the file is missing or empty, or a line is not UTF-8.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    if path.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty")
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                byte = raw[error.start]
                raise InputError(f"{path}:{number}: byte 0x{byte:02x} is not UTF-8; save the file as UTF-8") from None
            yield number, line.rstrip("\r\n")


def read_table(
    path: Path, delimiter: str = "\t", quoting: Literal[0, 3] = csv.QUOTE_NONE
) -> Iterator[tuple[str, dict[str, str]]]:
    """Read a table row by row, without quotes as in GLUE unless told: the file and line of each, and cells by column.

    The header names the columns, and every row has as many cells; pandas would fill up short rows without a word, and
    tells no lines. Raises InputError naming file and line.
    """
    lines = (f"{line}\n" for _, line in numbered_lines(path))
    reader = csv.reader(lines, delimiter=delimiter, quoting=quoting, strict=True)
    header: list[str] = []
    while True:
        where = f"{path}:{reader.line_num + 1}"  # where the row starts: a quoted cell may go over several lines
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise InputError(f"{where}: not a row: {error}") from None
        if not header:
            header = cells
            twice = [name for name in header if header.count(name) > 1]
            if twice:
                raise InputError(f"{where}: the header has the column {twice[0]!r} twice")
        elif cells:
            if len(cells) != len(header):
                raise InputError(f"{where}: {len(cells)} columns where the header has {len(header)}")
            yield where, dict(zip(header, cells, strict=True))


def parse_json(text: str, path: Path, line: int = 1) -> Any:
    """Parse the json that starts at a line of a file.

    Raises InputError naming file and line where it is not json or contains half a surrogate pair.
    """
    try:
        found = json.loads(text)
        if _ESCAPED_HALF.search(text):
            json.dumps(found, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{line + error.lineno - 1}: not json: {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise InputError(f"{path}:{line}: not json: nested too deeply") from None
    except UnicodeEncodeError as error:
        half = ascii(error.object[error.start])
        line += text.count("\n", 0, text.lower().find(half.strip("'")))
        raise InputError(f"{path}:{line}: {half} is half of a character; save the file as UTF-8") from None
    return found


@contextmanager
def copied(sources: Mapping[Path, Path]) -> Iterator[None]:
    """Copy the user's files, given by what each copy is called; errors about a copy name the file itself.

    Raises InputError where one is missing.
    """
    for copy, source in sources.items():
        if not source.is_file():
            raise InputError(f"{source}: no such file")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copy)
    try:
        yield
    except InputError as error:
        message = str(error)
        for copy, source in sources.items():
            message = message.replace(str(copy), str(source))
        raise InputError(message) from None


PARTS = ("train", "valid", "test")

_TITLE = re.compile(r"^ = (?!= ).+ = ?$")  # a section's heading has two signs or more


def text_path(folder: Path, part: str) -> Path:
    """The file of a split, named as in WikiText."""
    return folder / f"wiki.{part}.tokens"


def read_documents(path: Path) -> Iterator[str]:
    """Yield documents: articles where the file has WikiText's ` = Title = ` lines, else paragraphs.

    A paragraph ends at an empty line. Raises InputError where the file has no text.
    """
    lines: list[str] = []
    articles = found = False
    for _, line in numbered_lines(path):
        title = bool(_TITLE.match(line))
        articles = articles or title
        ends = title if articles else not line.strip()
        if ends and any(lines):
            found = True
            yield "\n".join(lines)
            lines = []
        if line.strip():
            lines.append(line.strip())
    if lines:
        found = True
        yield "\n".join(lines)
    if not found:
        raise InputError(f"{path}: no text in it")
