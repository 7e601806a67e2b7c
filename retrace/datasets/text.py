"""Readers of running text, WikiText or plain, and of tables; errors name file and line."""

import csv
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from retrace.core.errors import InputError
from retrace.core.files import numbered_lines, repeated

PARTS = ("train", "valid", "test")
csv.field_size_limit(min(sys.maxsize, 2**31 - 1))  # the default of 128 KiB is too small for a document
_FAULTS = {  # by how csv's messages begin
    "new-line character seen in unquoted field": "a carriage return without a line feed",
    "unexpected end of data": "a quote in it is never closed",
}
_TITLE = re.compile(r"^ = (?!= ).+ = ?$")  # of an article; headings of its sections have two equals signs or more

Records = Iterable[tuple[str, Mapping[str, Any]]]  # rows: the place of each, for messages, and its cells by column


@dataclass(frozen=True)
class Table:
    """The rows of a file or of a data set, which can be read once."""

    name: str  # for messages
    records: Records
    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # names, by column of class numbers


def read_table(path: Path, delimiter: Literal["\t", ","] = "\t") -> Iterator[tuple[str, dict[str, str]]]:
    """Read a table row by row: the file and line of each row, and its cells by column.

    In tab-separated files quotes are text, as in GLUE; in comma-separated ones cells may be quoted, as in RFC 4180. The
    header names the columns, and every row must have as many cells; pandas would silently fill short rows, and gives
    no line numbers. Raises InputError naming file and line.
    """
    lines = (f"{line}\n" for _, line in numbered_lines(path))
    quoting = csv.QUOTE_NONE if delimiter == "\t" else csv.QUOTE_MINIMAL
    reader = csv.reader(lines, delimiter=delimiter, quoting=quoting, strict=True)
    header: list[str] = []
    where = f"{path}:1"
    try:
        for cells in reader:
            if not header:
                header = cells
                if (twice := repeated(header)) is not None:
                    raise InputError(f"{where}: the header has the column {twice!r} twice")
            elif cells:
                if len(cells) != len(header):
                    raise InputError(f"{where}: columns: {len(cells)}; expected {len(header)}, as in the header")
                yield where, dict(zip(header, cells, strict=True))
            where = f"{path}:{reader.line_num + 1}"  # where the next row starts, as quoted cells may span several lines
    except csv.Error as error:
        said = next((words for begins, words in _FAULTS.items() if str(error).startswith(begins)), error)
        raise InputError(f"{where}: not a row: {said}") from None


def cell(where: str, cells: Mapping[str, Any], column: str, hint: str = "") -> Any:
    """A row's value in a column; raises InputError, ending in `hint`, where there is no such column."""
    if column not in cells:
        raise InputError(f"{where}: no column {column!r}; the columns are: {', '.join(cells)}{hint}")
    return cells[column]


def text_cell(where: str, cells: Mapping[str, Any], column: str, hint: str = "") -> str:
    """The same for a column of text; raises InputError if the value is anything else."""
    value = cell(where, cells, column, hint)
    if not isinstance(value, str):
        raise InputError(f"{where}: {column} {value!r} is not allowed; expected text")
    return value


@contextmanager
def copied(sources: Mapping[Path, Path]) -> Iterator[None]:
    """Copy the user's files, `sources` giving the original of each copy; errors raised inside name the original.

    Raises FileNotFoundError if one is missing.
    """
    for copy, source in sources.items():
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copy)
    with naming(sources):
        yield


@contextmanager
def naming(origins: Mapping[Path, Path | str]) -> Iterator[None]:
    """Errors raised inside name the origin of a file, as the file itself is removed after an error."""
    try:
        yield
    except InputError as error:
        message = str(error)
        for path, origin in origins.items():
            message = message.replace(str(path), str(origin))
        raise InputError(message) from None


def text_path(folder: Path, part: str) -> Path:
    """The file of a split, named as in WikiText."""
    return folder / f"wiki.{part}.tokens"


def read_documents(path: Path) -> Iterator[str]:
    """Yield documents: articles if the file has WikiText's ` = Title = ` lines, else paragraphs.

    Paragraphs are separated by blank lines. A lone carriage return also ends a line, as on the classic Mac. Raises
    InputError if the file has no text.
    """
    lines: list[str] = []
    articles = found = False
    for line in (line for _, whole in numbered_lines(path) for line in whole.split("\r")):
        title = bool(_TITLE.match(line))
        articles = articles or title
        if lines and (title if articles else not line.strip()):
            found = True
            yield "\n".join(lines)
            lines = []
        if line.strip():
            lines.append(line.strip())
    if lines:
        yield "\n".join(lines)
    elif not found:
        raise InputError(f"{path}: it contains no text")
