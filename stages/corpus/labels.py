"""Right or predicted classes in anyone's file: one a row, in a column of tsv, csv, jsonl or parquet."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stages.harness.errors import InputError
from stages.harness.plugins import load_plugin, plugin_names

FORMATS = "stages.corpus.formats"


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


def labels_of(rows: Sequence[tuple[str, Mapping[str, Any]]], column: str) -> list[str]:
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


def probabilities_of(rows: Sequence[tuple[str, Mapping[str, Any]]], classes: Sequence[str]) -> np.ndarray | None:
    """What stands in columns that are called as the classes, (N, C), each row divided by its sum; None without them.

    Raises InputError naming the row in which one is no number of 0 or more.
    """
    if not all(name in rows[0][1] for name in classes):
        return None
    found = np.empty((len(rows), len(classes)))
    for number, (where, cells) in enumerate(rows):
        try:
            found[number] = [float(cells[name]) for name in classes]
        except (KeyError, TypeError, ValueError):
            raise InputError(f"{where}: expected a number in each of {', '.join(classes)}") from None
        if not (found[number] >= 0).all() or not 0 < found[number].sum() < np.inf:
            raise InputError(f"{where}: expected probabilities in {', '.join(classes)}")
    return found / found.sum(axis=1, keepdims=True)
