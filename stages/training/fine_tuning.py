"""Fine-tuning on a task: train, and before the first and after each epoch write down what the model answers.

The weights of one epoch are kept, and its answers are scored: of the one with the lowest validation loss, or of the
last, where the answers are to a test set, which must choose nothing. Epoch 0, the model before any training, counts
only in the curves.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypedDict, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from accelerate.utils import gather_object
from torch import Tensor, nn

from stages.harness.device import Device
from stages.harness.errors import InputError
from stages.harness.progress import Meter
from stages.harness.records import write_json, written_folder
from stages.tasks.predictions import LOSSES, PREDICTIONS
from stages.tasks.task import Row, Task, Tensors
from stages.training.buckets import bucketed
from stages.training.loop import Budget, Epoch, Run, Speed, train
from stages.training.randomness import seeded
from stages.training.settings import FineTuneSettings
from stages.training.sharding import load_weights, whole_weights
from stages.training.states import States

Example = TypeVar("Example")


@dataclass(frozen=True)
class TaskBatch:
    """Collated examples on their device."""

    tensors: Tensors
    tokens: int  # real ones; 0 where the process's share is empty and an example only stands in


class TaskObjective(Generic[Example]):
    """A task's training examples as the loop wants them."""

    def __init__(self, task: Task[Example], settings: FineTuneSettings, seed: int, device: torch.device) -> None:
        self._task, self._settings, self._seed, self._device = task, settings, seed, device
        examples = task.examples("train")
        order = torch.randperm(len(examples), generator=seeded(seed, "subset")).tolist()[: settings.examples]
        self._examples = [examples[index] for index in sorted(order)]
        self._lengths = [task.length(example) for example in self._examples]
        self.steps = len(self._epoch(1))

    @property
    def examples(self) -> int:
        """How many there are."""
        return len(self._examples)

    def padding(self, epoch: int) -> float:
        """The share of an epoch's batches that is padding."""
        padded = sum(len(batch) * max(self._lengths[index] for index in batch) for batch in self._epoch(epoch))
        return 1 - sum(self._lengths) / padded

    def _epoch(self, epoch: int) -> list[list[int]]:
        return bucketed(self._lengths, self._settings.batch_size, seeded(self._seed, f"fine-tuning epoch {epoch}"))

    def batches(self, epoch: int, share: slice) -> Iterator[TaskBatch]:
        """The epoch's batches of similar length."""
        for batch in self._epoch(epoch):
            mine = batch[share]
            # Every process must take part in the backward pass, so an example stands in for an empty share.
            tensors = self._task.collate([self._examples[index] for index in mine or batch[:1]])
            yield TaskBatch(_moved(tensors, self._device), sum(self._lengths[index] for index in mine))

    def loss(self, model: nn.Module, batch: TaskBatch) -> tuple[Tensor, int]:
        """The task's summed loss."""
        loss, count = self._task.loss(self._task.scores(model, batch.tensors), batch.tensors)
        return (loss, count) if batch.tokens else (loss * 0.0, 0)

    def tokens(self, batch: TaskBatch) -> int:
        """Real tokens of the examples."""
        return batch.tokens


@torch.no_grad()
def answer(
    task: Task[Example], model: nn.Module, examples: Sequence[Example], batch_size: int, device: Device
) -> tuple[list[np.ndarray], float]:
    """The scores of every example, in order and without padding, and the mean loss of a target in nats."""
    order = sorted(range(len(examples)), key=lambda index: task.length(examples[index]))
    batches = [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
    found: list[tuple[int, np.ndarray]] = []
    losses: list[tuple[float, int]] = []  # summed, and over how many targets
    for indices, counts in device.dealt(batches):
        tensors = _moved(task.collate([examples[index] for index in indices]), device.place)
        with device.autocast():
            scores = task.scores(model, tensors)
        if not counts:
            continue
        loss, count = task.loss(scores, tensors)
        losses.append((loss.item(), count))
        rows = scores.float().cpu().numpy()
        for index, row in zip(indices, rows, strict=True):
            found.append((index, row[: task.length(examples[index])] if row.ndim > 1 else row))
    if device.processes > 1:
        found, losses = gather_object(found), gather_object(losses)
    found.sort(key=lambda item: item[0])
    return [row for _, row in found], sum(loss for loss, _ in losses) / sum(count for _, count in losses)


class Found(TypedDict):
    """What one epoch's evaluation found."""

    loss: dict[str, Any]
    rows: list[Row]


@dataclass(frozen=True)
class Tuned:
    """What fine-tuning wrote down: predictions and losses of every epoch, and how fast it was."""

    rows: list[Row]  # each with its epoch
    losses: list[dict[str, Any]]  # `kept` says of which epoch the weights are
    speed: Speed


def fine_tune(
    task: Task[Example], model: nn.Module, settings: FineTuneSettings, seed: int, device: Device, title: str,
    states: States | None = None,
) -> Tuned:  # fmt: skip
    """Train `model` and leave it with the kept epoch's weights."""
    objective = TaskObjective(task, settings, seed, device.place)
    held_out = task.examples("dev")
    run = Run(title, model, objective, device, settings.optimiser, settings.lr, Budget(settings.epochs), states)

    def after_epoch(epoch: Epoch, meter: Meter) -> Found:
        scores, loss = answer(task, model, held_out, 2 * settings.batch_size, device)
        if not math.isfinite(loss):
            raise InputError(
                f"{title}: the validation loss is {loss} at epoch {epoch.number}; "
                f"a lower lr than {settings.lr} may help"
            )
        meter.say(f"{title}  epoch {epoch.number}  validation loss {loss:.4f}")
        better = all(loss < found["loss"]["validation_loss"] for found in run.journal[1:])
        kept = bool(epoch.number) and (better or settings.keep == "last")
        if kept:
            for earlier in run.journal:
                earlier["loss"]["kept"] = False
            run.kept.update({name: value.cpu().clone() for name, value in whole_weights(model).items()})
        losses = {"epoch": epoch.number, "training_loss": epoch.loss, "validation_loss": loss, "kept": kept}
        return {"loss": losses, "rows": [{"epoch": epoch.number, **row} for row in task.rows(held_out, scores)]}

    speed = train(run, after_epoch)
    load_weights(model, run.kept)
    found: list[Found] = run.journal
    return Tuned([row for epoch in found for row in epoch["rows"]], [epoch["loss"] for epoch in found], speed)


def write_predictions(path: Path, tuned: Tuned) -> None:
    """Write the folder that `stages.tasks.predictions` reads."""
    with written_folder(path) as folder:
        pq.write_table(pa.Table.from_pylist(tuned.rows), folder / PREDICTIONS)
        write_json(folder / LOSSES, tuned.losses)


def _moved(tensors: Tensors, device: torch.device) -> Tensors:
    return {name: tensor.to(device) for name, tensor in tensors.items()}
