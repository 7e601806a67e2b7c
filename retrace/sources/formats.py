"""Rows of a user's file, whatever its format, each with the place that error messages name."""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq

from retrace.core.errors import InputError
from retrace.datasets.text import numbered_lines, parse_json, read_table

Records = Iterator[tuple[str, dict[str, Any]]]  # the place of each row, and its cells by column
Rows = Sequence[tuple[str, Mapping[str, Any]]]


def read_records(path: Path, file_format: str | None = None) -> Records:
    """Read a file row by row; its ending tells the format unless `file_format` names it.

    Raises InputError naming the file, and the row where it is one, where the format is unknown, the file is missing
    or a row is malformed.
    """
    name = path.suffix.removeprefix(".") if file_format is None else file_format
    if name not in FORMATS:
        raise InputError(f"{path}: format {name!r} is not allowed; expected one of {', '.join(FORMATS)}")
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    return FORMATS[name](path)


def read_rows(path: Path) -> Rows:
    """Read all rows of a file.

    Raises InputError as `read_records` does, and where there is no row.
    """
    rows = list(read_records(path))
    if not rows:
        raise InputError(f"{path}: no row in it")
    return rows


def labels_of(rows: Rows, column: str) -> list[str]:
    """The labels in a column, as text.

    Raises InputError naming the row that has none.
    """
    for where, cells in rows:
        if str(cells.get(column, "")).strip() == "":
            raise InputError(f"{where}: no {column!r}; there is: {', '.join(cells)}")
    return [label_text(where, column, cells[column]) for where, cells in rows]


def label_text(where: str, column: str, label: Any) -> str:
    """A label as text without surrounding white space; 1.0, as tables with gaps write whole numbers, is 1.

    Raises InputError naming the row where it is empty, true or false, or anything else that is no label.
    """
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    if isinstance(label, bool) or not isinstance(label, str | int) or not str(label).strip():
        raise InputError(f"{where}: {column} {label!r} is not allowed; expected text or a whole number")
    return str(label).strip()


def _read_csv(path: Path) -> Records:
    """Comma-separated values, cells quoted where they need it (RFC 4180)."""
    return read_table(path, ",", csv.QUOTE_MINIMAL)


def _read_jsonl(path: Path) -> Records:
    """A json object a line."""
    for number, line in numbered_lines(path):
        if line.strip():
            record = parse_json(line, path, number)
            if not isinstance(record, dict):
                raise InputError(f"{path}:{number}: not a json object")
            yield f"{path}:{number}", record


def _read_parquet(path: Path) -> Records:
    try:
        rows = pq.read_table(path).to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path}: not parquet: {str(error).splitlines()[0]}") from None
    for number, row in enumerate(rows, start=1):
        yield f"{path}: row {number}", row


def _read_semeval(path: Path) -> Records:
    """SemEval-2014 task 4 (Pontiki et al. 2014): a row for each aspect term of a sentence.

    Its cells are the sentence as `text`, and `term`, `polarity`, `from` and `to`.
    """
    try:
        sentences = ElementTree.parse(path).getroot().iter("sentence")
    except ElementTree.ParseError as error:
        raise InputError(f"{path}:{error.position[0]}: not xml: {error}") from None
    for number, sentence in enumerate(sentences, start=1):
        where = f"{path}: sentence {sentence.get('id', f'number {number}')}"
        for aspect in sentence.iter("aspectTerm"):
            missing = [name for name in ("term", "polarity") if name not in aspect.attrib]
            if missing:
                raise InputError(f"{where}: an aspectTerm without {missing[0]!r}")
            yield where, {"text": sentence.findtext("text"), **aspect.attrib}


# By the ending of the file's name.
FORMATS: dict[str, Callable[[Path], Records]] = {
    "csv": _read_csv,
    "jsonl": _read_jsonl,
    "parquet": _read_parquet,
    "tsv": read_table,
    "xml": _read_semeval,
}
