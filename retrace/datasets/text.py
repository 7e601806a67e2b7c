"""Running text, as WikiText or plain, read document by document; tables, each error with its place."""

import csv
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from retrace.core.errors import InputError
from retrace.core.files import numbered_lines

csv.field_size_limit(min(sys.maxsize, 2**31 - 1))  # in place of 128 KiB, which a document may well exceed
_LONE_RETURN = "new-line character seen in unquoted field"  # as csv says it


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
            said = "a carriage return without a line feed" if str(error).startswith(_LONE_RETURN) else error
            raise InputError(f"{where}: not a row: {said}") from None
        if not header:
            header = cells
            twice = [name for name in header if header.count(name) > 1]
            if twice:
                raise InputError(f"{where}: the header has the column {twice[0]!r} twice")
        elif cells:
            if len(cells) != len(header):
                raise InputError(f"{where}: {len(cells)} columns where the header has {len(header)}")
            yield where, dict(zip(header, cells, strict=True))


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

    A paragraph ends at an empty line. A carriage return ends a line too, as in files of old. Raises InputError where
    the file has no text.
    """
    lines: list[str] = []
    articles = found = False
    for line in (line for _, whole in numbered_lines(path) for line in whole.split("\r")):
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
