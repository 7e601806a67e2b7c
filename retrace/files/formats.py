"""The rows of a user's file, whatever its format, each with its place for error messages."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from retrace.core.errors import InputError, first_line
from retrace.core.files import numbered_lines, parse_json, repeated, require_file
from retrace.datasets.text import Records, cell, read_table

Rows = Sequence[tuple[str, Mapping[str, Any]]]
# A file of a few kilobytes can refer to one text a billion times. So the bytes that a file unpacks to, with what Python
# adds for each row, are limited to a multiple of its size, unless they are few.
BATCH = 256  # rows at a time
ROW = 256  # bytes that Python adds for a row
LITTLE, FOLD = 1 << 30, 100  # bytes that any file may unpack to; how many times its own size


def read_records(path: Path, file_format: str | None = None) -> Records:
    """Read a file row by row; the format is that of its suffix unless `file_format` names it.

    Raises InputError if the file is missing or the format is unknown; and naming the row, if one is malformed.
    """
    require_file(path)
    name = path.suffix.removeprefix(".").lower() if file_format is None else file_format
    if name not in FORMATS:
        raise InputError(f"{path}: format {name!r} is not allowed; expected one of {', '.join(FORMATS)}")
    return FORMATS[name](path)


def read_rows(path: Path) -> Rows:
    """Read all rows of a file.

    Raises InputError as `read_records` does, and if there are no rows.
    """
    rows = list(read_records(path))
    if not rows:
        raise InputError(f"{path}: it contains no row")
    return rows


def label_of(where: str, cells: Mapping[str, Any], column: str, hint: str) -> str:
    """A row's label as text without surrounding white space; 1.0, as pandas writes integers beside gaps, is 1.

    Raises InputError naming the row if the label is missing or empty, or neither text nor a whole number; `hint` is as
    for `cell`.
    """
    label = cell(where, cells, column, hint)
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    if isinstance(label, bool) or not isinstance(label, str | int) or not str(label).strip():
        raise InputError(f"{where}: {column} {label!r} is not allowed; expected text or a whole number")
    return str(label).strip()


def _read_jsonl(path: Path) -> Records:
    """One json object per line."""
    for number, line in numbered_lines(path):
        if line.strip():
            record = parse_json(line, path, number)
            if not isinstance(record, dict):
                raise InputError(f"{path}:{number}: not a json object")
            yield f"{path}:{number}", record


def _read_parquet(path: Path) -> Records:
    """The rows, without columns of lists or structures."""
    try:
        metadata = pq.read_metadata(path)
        size = ROW * metadata.num_rows
        groups = map(metadata.row_group, range(metadata.num_row_groups))
        _require_size(path, size + sum(group.total_byte_size for group in groups))
        schema = metadata.schema.to_arrow_schema()
        names = [field.name for field in schema if not pa.types.is_nested(field.type)]
        if (twice := repeated(schema.names)) is not None:
            raise InputError(f"{path}: the column {twice!r} occurs twice")
        for batch in _batches(path, names):  # all are measured before the first becomes Python objects
            size += sum(map(_size, batch.columns))
            _require_size(path, size)
        rows = 0
        for batch in _batches(path, names):
            columns = [_values(path, rows, name, batch.column(name)) for name in names]  # a.b also selects b of a
            for row, cells in enumerate(zip(*columns, strict=True), start=rows + 1):
                yield f"{path}: row {row}", dict(zip(names, cells, strict=True))
            rows += len(batch)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path}: not parquet: {first_line(error)}") from None


def _batches(path: Path, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The columns of these names, with each text stored once however often it occurs."""
    return pq.ParquetFile(path, read_dictionary=names).iter_batches(BATCH, columns=names)


def _require_size(path: Path, unpacked: int) -> None:
    """Raise InputError if a file unpacks to far more bytes than it has."""
    if unpacked > max(LITTLE, FOLD * path.stat().st_size):
        raise InputError(f"{path}: it unpacks to more than {FOLD} times its {path.stat().st_size:,} bytes")


def _size(column: pa.Array) -> int:
    """Bytes of all values, counting each as often as it occurs even if it is stored once."""
    if not isinstance(column, pa.DictionaryArray):
        return column.nbytes
    lengths = pc.binary_length(column.dictionary).take(column.indices)  # pyright: ignore[reportAttributeAccessIssue]
    return pc.sum(lengths).as_py() or 0  # pyright: ignore[reportAttributeAccessIssue]


def _values(path: Path, before: int, name: str, column: pa.Array) -> list[Any]:
    """The values of a column in a batch that comes after `before` rows."""
    values = []
    for row, value in enumerate(column, start=before + 1):
        try:
            values.append(value.as_py())
        except UnicodeDecodeError as error:
            byte = error.object[error.start]
            raise InputError(f"{path}: row {row}: byte 0x{byte:02x} of {name} is not UTF-8") from None
        except (OverflowError, ValueError) as error:  # a date after the year 9999, an unknown time zone
            raise InputError(f"{path}: row {row}: {name}: {first_line(error)}") from None
    return values


def _read_semeval(path: Path) -> Records:
    """SemEval-2014 task 4 (Pontiki et al. 2014): a row for each aspect term of a sentence.

    Its cells are the sentence as `text`, and `term`, `polarity`, `from` and `to`.
    """
    try:
        sentences = ElementTree.parse(path).getroot().iter("sentence")
    except ElementTree.ParseError as error:
        line, column = error.position
        raise InputError(f"{path}:{line}:{column + 1}: not xml: {str(error).partition(': line')[0]}") from None
    except (LookupError, ValueError) as error:  # unknown or unsupported encoding
        raise InputError(f"{path}:1: not xml: {error}") from None
    size = 0
    for number, sentence in enumerate(sentences, start=1):
        where = f"{path}: sentence {sentence.get('id', f'number {number}')}"
        text = sentence.find("text")
        words = None if text is None else "".join(text.itertext())  # also those of nested elements
        for aspect in sentence.iter("aspectTerm"):
            missing = [name for name in ("term", "polarity") if name not in aspect.attrib]
            if missing:
                raise InputError(f"{where}: an aspectTerm without {missing[0]!r}")
            size += ROW + len(words or "")  # each row is written with the whole sentence
            _require_size(path, size)
            yield where, {"text": words, **aspect.attrib}


# By suffix.
FORMATS: dict[str, Callable[[Path], Records]] = {
    "csv": partial(read_table, delimiter=","),
    "jsonl": _read_jsonl,
    "parquet": _read_parquet,
    "tsv": read_table,
    "xml": _read_semeval,
}
