"""What a fine-tuning run hands to evaluation: predictions and losses after every epoch, and on a test set.

Evaluation writes the predictions of baselines in the same way: reports/baselines/<task>.parquet, a column for each.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from retrace.core.errors import InputError, one_line
from retrace.core.files import atomic_file, read_json
from retrace.results.grid import Kind

PREDICTIONS, LOSSES, UPDATES = "predictions.parquet", "losses.json", "updates.json"
BASELINES = Path("reports/baselines")
DRAWN = "drawn.json"  # numbers of the training examples, where not all were trained on
# By part of the data: predictions, losses, and the key of the loss.
FILES = {"dev": (PREDICTIONS, LOSSES, "validation_loss"), "test": (f"test-{PREDICTIONS}", f"test-{LOSSES}", "loss")}

LOGIT = "logit_"  # and the number of a class
_COLUMNS = {
    "classification": {"epoch": pa.int64(), "id": pa.int64(), "label": pa.int64()},  # and the logits
    "question_answering": {"epoch": pa.int64(), "id": pa.string(), "text": pa.string(), "start": pa.int64(),
                           "score": pa.float64(), "null_score": pa.float64()},
}  # fmt: skip


@dataclass(frozen=True)
class PredictedEpoch:
    """Losses in nats, and predictions, after an epoch; epoch 0 is before training and has no training loss."""

    number: int
    training_loss: float | None
    validation_loss: float  # on a test set: the test loss
    kept: bool  # whether the weights of this epoch were kept
    rows: pd.DataFrame  # a row for each example, with the columns of this kind of task


def kept_epoch(epochs: Sequence[PredictedEpoch]) -> PredictedEpoch:
    """The epoch whose weights were kept."""
    (kept,) = (epoch for epoch in epochs if epoch.kept)
    return kept


def write_predictions(path: Path, kind: Kind, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the predictions of all epochs, a row for each example and epoch.

    `start` is the character of the passage at which the answer starts, None if it is not part of the passage;
    `null_score` is None if the model never abstains. Raises InputError naming a column that is wrong for this kind of
    task.
    """
    pq.write_table(_checked(path, kind, pa.Table.from_pylist(list(rows))), path)


def read_predictions(path: Path, kind: Kind) -> pd.DataFrame:
    """The predictions of all epochs.

    Raises InputError if the file is missing, or naming a column that is wrong for this kind of task.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file; run the fine-tuning stage first")
    try:
        table = pq.read_table(path)
    except pa.ArrowException as error:
        raise InputError(f"{path}: not parquet: {one_line(error)}") from None
    return _checked(path, kind, table).to_pandas()


def read_epochs(folder: Path, kind: Kind, part: str = "dev") -> list[PredictedEpoch]:
    """All epochs of a run, in order; of the test set, epoch 0 and the epoch that was kept.

    Raises InputError if the run is missing or its predictions are wrong.
    """
    predictions, losses, loss = FILES[part]
    rows = {number: found.drop(columns="epoch").reset_index(drop=True)
            for number, found in read_predictions(folder / predictions, kind).groupby("epoch")}  # fmt: skip
    return [
        PredictedEpoch(found["epoch"], found.get("training_loss"), found[loss], found["kept"], rows[found["epoch"]])
        for found in read_json(folder / losses)
    ]


def read_updates(folder: Path) -> list[tuple[int, float]]:
    """The curve of the training loss: updates done, and the mean loss since the previous point, in nats per target."""
    return [(int(update), loss) for update, loss in read_json(folder / UPDATES)]


def read_drawn(folder: Path) -> Sequence[int] | None:
    """The numbers of the examples that a run was trained on; None if it was all of them."""
    return read_json(folder / DRAWN) if (folder / DRAWN).is_file() else None


def _checked(path: Path, kind: Kind, table: pa.Table) -> pa.Table:
    columns = dict(_COLUMNS[kind])
    if kind == "classification":
        classes = max(2, sum(name.startswith(LOGIT) for name in table.column_names))
        columns |= {f"{LOGIT}{number}": pa.float64() for number in range(classes)}
    found = {field.name: field.type for field in table.schema}
    for name in [*columns, *found]:
        if name not in columns:
            raise InputError(f"{path}: column {name}: not expected; {kind} has {', '.join(columns)}")
        if found.get(name) not in (columns[name], pa.null()):
            raise InputError(f"{path}: column {name}: expected {columns[name]}, found {found.get(name, 'none')}")
    return table.select(list(columns)).cast(pa.schema(columns))


def write_baselines(task: str, decided: Mapping[str, Sequence[Any]]) -> None:
    """Write class numbers, or `text` and `start` of answers ("" and -1 for none), in the order of the examples."""
    with atomic_file(BASELINES / f"{task}.parquet") as path:
        pq.write_table(pa.table({name: list(given) for name, given in decided.items()}), path)


def read_baselines(task: str) -> dict[str, list[Any]]:
    """What `write_baselines` wrote, by baseline; empty if there is no file."""
    path = BASELINES / f"{task}.parquet"
    return pq.read_table(path).to_pydict() if path.is_file() else {}
