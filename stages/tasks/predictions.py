"""What a fine-tuning stage wrote down, epoch by epoch."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from stages.harness.errors import InputError
from stages.harness.records import read_json

PREDICTIONS, LOSSES, UPDATES = "predictions.parquet", "losses.json", "updates.json"


@dataclass(frozen=True)
class Epoch:
    """The losses and predictions after an epoch; epoch 0 is before any training and has no training loss."""

    number: int
    training_loss: float | None
    validation_loss: float
    kept: bool  # whether the weights that were kept are of this one
    rows: list[dict[str, Any]]


def read_epochs(folder: Path) -> list[Epoch]:
    """All epochs of a cell of the matrix, in order.

    Raises InputError where the cell was not run.
    """
    if not (folder / PREDICTIONS).is_file():
        raise InputError(f"{folder / PREDICTIONS}: no such file; run the fine-tuning stage first")
    rows = pq.read_table(folder / PREDICTIONS).to_pylist()
    by_epoch: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        by_epoch.setdefault(row.pop("epoch"), []).append(row)
    return [
        Epoch(loss["epoch"], loss["training_loss"], loss["validation_loss"], loss["kept"], by_epoch[loss["epoch"]])
        for loss in read_json(folder / LOSSES)
    ]


def read_updates(folder: Path) -> list[tuple[int, float]]:
    """The training loss by update: how many were done, and the mean loss since the point before, in nats a target."""
    return [(int(update), loss) for update, loss in read_json(folder / UPDATES)]
