"""Probabilities of classes in the columns of anyone's file."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from retrace.core.errors import InputError
from retrace.datasets.examples import class_order

Rows = Sequence[tuple[str, Mapping[str, Any]]]  # their places and cells
HALF_A_DIGIT, MOST_ROUNDING = 0.005, 0.1  # by which each of a row's numbers may be rounded, and all together
FLOAT_ERROR = 1e-9  # of the sum itself
SHOWN = 5  # names in a message
_WHOLE = re.compile(r"\+?(?P<number>-?[0-9]+)(\.0*)?")


def class_name(text: str) -> str:
    """What programs write differently, the same: 1, 1.0 and +1 are 1; true, True and TRUE are true."""
    whole = _WHOLE.fullmatch(text)
    if whole:
        return whole["number"]
    return text.lower() if text.lower() in ("true", "false") else text


def classes_with_columns(rows: Rows, classes: Iterable[str]) -> set[str]:
    """Those of the classes that a column is called as."""
    return {class_name(column) for column in rows[0][1]} & set(classes)


def probabilities_of(rows: Rows, classes: Sequence[str], prediction: str) -> tuple[list[str], np.ndarray]:
    """What stands in columns that are called as the classes, (N, C), as it stands there, and the classes that it is of.

    Other columns of numbers are classes too, of a model that knows more than occur, where with them the rows sum to 1
    and without them not as nearly. `prediction` is a column that is none of them.
    Raises InputError naming the row in which one is no number of 0 or more or which does not sum to 1.
    """
    cells = pd.DataFrame([cells for _, cells in rows]).rename(columns=class_name)
    table = cells.map(_number)
    found = table[list(classes)].to_numpy()
    wrong = np.argwhere(~((found >= 0) & (found < np.inf)))
    if len(wrong):
        row, column = wrong[0]
        said = f"{classes[column]} has {cells[classes[column]].iloc[row]}"
        raise InputError(f"{rows[row][0]}: expected probabilities in {some_of(classes)}; {said}")
    rest = 1 + MOST_ROUNDING - found.sum(axis=1)
    others = [name for name in table if name not in (*classes, prediction) and table[name].between(0, rest).all()]
    every = class_order([*classes, *others])
    more = table[every].to_numpy()
    if sum_to_one(more).all() and _excess(more).sum() < _excess(found).sum() - FLOAT_ERROR * len(rows):
        return every, more
    for (where, _), numbers in zip(rows, found, strict=True):
        if not sum_to_one(numbers[None])[0]:
            said = f"they sum to {numbers.sum():.6g} and not to 1"
            raise InputError(f"{where}: expected probabilities in {some_of(classes)}; {said}")
    return list(classes), found


def some_of(names: Sequence[str]) -> str:
    """The names for a message, the first few where there are many."""
    shown = ", ".join(names[:SHOWN])
    return shown if len(names) <= SHOWN else f"{shown} and {len(names) - SHOWN} more"


def sum_to_one(found: np.ndarray) -> np.ndarray:
    """Which rows of (N, C) do, but for the rounding of numbers of two digits: (N,), bool."""
    return _excess(found) <= min(HALF_A_DIGIT * found.shape[1], MOST_ROUNDING) + FLOAT_ERROR


def _excess(found: np.ndarray) -> np.ndarray:
    """How far the sum of each row of (N, C) is from 1, (N,)."""
    return np.abs(found.sum(axis=1) - 1)


def _number(cell: Any) -> float:
    try:
        return float(cell)
    except (TypeError, ValueError):
        return math.nan
