"""What a fine-tuning stage wrote down: epoch by epoch on the validation set, and before and after on a test set."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from retrace.core.errors import InputError
from retrace.core.files import read_json

PREDICTIONS, LOSSES, UPDATES = "predictions.parquet", "losses.json", "updates.json"
TEST_PREDICTIONS, TEST_LOSSES = "test-predictions.parquet", "test-losses.json"  # of a task that has a test split
DRAWN = "drawn.json"  # numbers of the training examples, where not all were trained on


@dataclass(frozen=True)
class Epoch:
    """The losses and predictions after an epoch; epoch 0 is before any training and has no training loss."""

    number: int
    training_loss: float | None
    validation_loss: float  # of a test set: the loss there
    kept: bool  # whether the weights that were kept are of this one
    rows: list[dict[str, Any]]


def read_epochs(folder: Path) -> list[Epoch]:
    """All epochs of a cell of the matrix, in order.

    Raises InputError where the cell was not run.
    """
    rows = _rows_by_epoch(folder / PREDICTIONS)
    return [
        Epoch(loss["epoch"], loss["training_loss"], loss["validation_loss"], loss["kept"], rows[loss["epoch"]])
        for loss in read_json(folder / LOSSES)
    ]


def read_updates(folder: Path) -> list[tuple[int, float]]:
    """The training loss by update: how many were done, and the mean loss since the point before, in nats a target."""
    return [(int(update), loss) for update, loss in read_json(folder / UPDATES)]


def read_tested(folder: Path) -> list[Epoch]:
    """What a cell answered on the test set: before any training, and of the epoch that was kept.

    Raises InputError where the cell was not run on a test set.
    """
    rows = _rows_by_epoch(folder / TEST_PREDICTIONS)
    return [
        Epoch(loss["epoch"], None, loss["loss"], loss["kept"], rows[loss["epoch"]])
        for loss in read_json(folder / TEST_LOSSES)
    ]


def read_drawn(folder: Path) -> Sequence[int] | None:
    """Which training examples a cell was given, by number; None where it was given all."""
    return read_json(folder / DRAWN) if (folder / DRAWN).is_file() else None


def _rows_by_epoch(path: Path) -> dict[int, list[dict[str, Any]]]:
    if not path.is_file():
        raise InputError(f"{path}: no such file; run the fine-tuning stage first")
    by_epoch: dict[int, list[dict[str, Any]]] = {}
    for row in pq.read_table(path).to_pylist():
        by_epoch.setdefault(row.pop("epoch"), []).append(row)
    return by_epoch
