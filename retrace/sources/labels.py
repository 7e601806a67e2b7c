"""Right or predicted classes in anyone's file: one a row, in a column of tsv, csv, jsonl or parquet."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from retrace.core.errors import InputError
from retrace.core.registry import load_plugin, plugin_names

FORMATS = "retrace.sources.formats"

Rows = Sequence[tuple[str, Mapping[str, Any]]]  # their places and cells


def read_rows(path: Path) -> list[tuple[str, Mapping[str, Any]]]:
    """Each row's place and cells; the format is that of the file's ending.

    Raises InputError where the ending is not known, the file cannot be read or it has no row.
    """
    endings = [f".{name}" for name in plugin_names(FORMATS)]
    if path.suffix not in endings:
        raise InputError(f"{path}: the file's name is to end in one of {', '.join(endings)}")
    rows = list(load_plugin(FORMATS, path.suffix.removeprefix("."), "format").read_records(path))
    if not rows:
        raise InputError(f"{path}: no row in it")
    return rows


def labels_of(rows: Rows, column: str) -> list[str]:
    """The classes in a column, as text.

    Raises InputError naming the row that has none.
    """
    for where, cells in rows:
        if str(cells.get(column, "")).strip() == "":
            raise InputError(f"{where}: no {column!r}; there is: {', '.join(cells)}")
    return [label_text(where, column, cells[column]) for where, cells in rows]


def label_text(where: str, column: str, label: Any) -> str:
    """A class as text, without white space about it; 1.0, as tables with gaps write whole numbers, is 1.

    Raises InputError naming the row where it is nothing, true or false, or anything else that names no class.
    """
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    if isinstance(label, bool) or not isinstance(label, str | int) or not str(label).strip():
        raise InputError(f"{where}: {column} {label!r} is not allowed; expected text or a whole number")
    return str(label).strip()
