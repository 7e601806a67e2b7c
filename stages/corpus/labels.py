"""Right or predicted classes in anyone's file: one a row, in a column of tsv, csv, jsonl or parquet."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stages.harness.errors import InputError
from stages.harness.plugins import load_plugin, plugin_names

FORMATS = "stages.corpus.formats"
SHOWN = 5  # names in a message
HALF_A_DIGIT, MOST_ROUNDING = 0.005, 0.1  # by which each of a row's numbers may be rounded, and all together
FLOAT_ERROR = 1e-9  # of the sum itself
_NUMBER = re.compile(r"-?[0-9]+")
_WHOLE = re.compile(r"\+?(?P<number>-?[0-9]+)(\.0*)?")

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


def class_name(text: str) -> str:
    """What programs write differently, the same: 1, 1.0 and +1 are 1; true, True and TRUE are true."""
    whole = _WHOLE.fullmatch(text)
    if whole:
        return whole["number"]
    return text.lower() if text.lower() in ("true", "false") else text


def class_order(names: Iterable[str]) -> list[str]:
    """Every class once: in the order of numbers where all are whole numbers, else of the alphabet."""
    every = sorted(set(names))
    return sorted(every, key=int) if all(_NUMBER.fullmatch(name) for name in every) else every


def classes_with_columns(rows: Rows, classes: Iterable[str]) -> set[str]:
    """Those of the classes that a column is called as."""
    return {class_name(column) for column in rows[0][1]} & set(classes)


def probabilities_of(rows: Rows, classes: Sequence[str], prediction: str) -> tuple[list[str], np.ndarray]:
    """What stands in columns that are called as the classes, (N, C), as it stands there, and the classes that it is of.

    Other columns of numbers are classes too, of a model that knows more than occur, where with them the rows sum to 1
    and without them not as nearly. `prediction` is a column that is none of them.
    Raises InputError naming the row in which one is no number of 0 or more or which does not sum to 1.
    """
    columns = {class_name(column): column for column in rows[0][1]}
    found = np.array([_numbers(where, cells, classes, columns) for where, cells in rows])
    rest = 1 + MOST_ROUNDING - found.sum(axis=1)
    others = {name: _parts(rows, column, rest) for name, column in columns.items()
              if name not in classes and column != prediction}  # fmt: skip
    values = dict(zip(classes, found.T, strict=True)) | {name: of for name, of in others.items() if of is not None}
    every = class_order(values)
    more = np.stack([values[name] for name in every], axis=1)
    if sum_to_one(more).all() and _excess(more).sum() < _excess(found).sum() - FLOAT_ERROR * len(rows):
        return every, more
    for (where, _), numbers, is_right in zip(rows, found, sum_to_one(found), strict=True):
        if not is_right:
            called, total = some_of(classes), numbers.sum()
            raise InputError(f"{where}: expected probabilities in {called}; they sum to {total:.6g} and not to 1")
    return list(classes), found


def some_of(names: Sequence[str]) -> str:
    """The names for a message, the first few where there are many."""
    shown = ", ".join(names[:SHOWN])
    return shown if len(names) <= SHOWN else f"{shown} and {len(names) - SHOWN} more"


def _numbers(where: str, cells: Mapping[str, Any], classes: Sequence[str], columns: Mapping[str, str]) -> list[float]:
    try:
        numbers = [float(cells[columns[name]]) for name in classes]
    except (KeyError, TypeError, ValueError):
        raise InputError(f"{where}: expected a number in each of {some_of(classes)}") from None
    for name, number in zip(classes, numbers, strict=True):
        if not 0 <= number < math.inf:
            raise InputError(f"{where}: expected probabilities in {some_of(classes)}; {name} has {number}")
    return numbers


def _parts(rows: Rows, column: str, rest: np.ndarray) -> np.ndarray | None:
    """A column of numbers from 0 to what is left in each row, (N,), or None where it holds anything else."""
    try:
        values = np.array([float(cells[column]) for _, cells in rows])
    except (KeyError, TypeError, ValueError):
        return None
    return values if ((values >= 0) & (values <= rest)).all() else None


def sum_to_one(found: np.ndarray) -> np.ndarray:
    """Which rows of (N, C) do, but for the rounding of numbers of two digits: (N,), bool."""
    return _excess(found) <= min(HALF_A_DIGIT * found.shape[1], MOST_ROUNDING) + FLOAT_ERROR


def _excess(found: np.ndarray) -> np.ndarray:
    """How far the sum of each row of (N, C) is from 1, (N,)."""
    return np.abs(found.sum(axis=1) - 1)
