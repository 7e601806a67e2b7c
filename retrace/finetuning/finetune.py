"""Batches of examples of similar length, so that little of a batch is padding.

Fine-tuning on a task: train, and before the first and after each epoch write down what the model answers.

The weights of one epoch are kept, and its answers are scored: of the one with the lowest validation loss, or of the
last, where there is nothing to choose it by. Epoch 0, the model before any training, counts only in the curves.

A task's test set chooses nothing: it is answered by the kept weights, and before training, and both are written apart.
"""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NotRequired, TypedDict, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from accelerate.utils import gather_object
from torch import Tensor, nn

from retrace.compute.device import Device
from retrace.compute.random import seeded
from retrace.compute.sharding import gather_weights, load_weights
from retrace.core.errors import InputError
from retrace.core.files import atomic_folder, write_json, write_text
from retrace.finetuning.settings import FineTuneSettings
from retrace.finetuning.task import Row, Task, Tensors
from retrace.results.predictions import DRAWN, LOSSES, PREDICTIONS, TEST_LOSSES, TEST_PREDICTIONS, UPDATES
from retrace.training.checkpoint import Checkpointer
from retrace.training.loop import Budget, Epoch, Run, Speed, train
from retrace.training.progress import Meter

POOL = 100  # batches that are sorted by length together: some 2% of padding on SST-2; more is less random


def bucketed(lengths: Sequence[int], batch_size: int, generator: torch.Generator) -> list[list[int]]:
    """Indices of all examples, each once, in batches in random order; the last of a pool may be smaller."""
    order = torch.randperm(len(lengths), generator=generator).tolist()
    batches = []
    for start in range(0, len(order), batch_size * POOL):
        pool = sorted(order[start : start + batch_size * POOL], key=lambda index: lengths[index])
        batches += [pool[first : first + batch_size] for first in range(0, len(pool), batch_size)]
    return [batches[index] for index in torch.randperm(len(batches), generator=generator).tolist()]


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
        order = torch.randperm(len(examples), generator=seeded(seed, "subset")).tolist()[: settings.max_train_examples]
        self.drawn = sorted(order) if len(order) < len(examples) else None  # numbers; None where all are trained on
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

    def batches(self, epoch: int, rank_slice: slice) -> Iterator[TaskBatch]:
        """The epoch's batches of similar length."""
        for batch in self._epoch(epoch):
            mine = batch[rank_slice]
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
    for indices, counts in device.share_batches(batches):
        tensors = _moved(task.collate([examples[index] for index in indices]), device.torch_device)
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


class Tested(TypedDict):
    """What a model answered on the test set."""

    loss: dict[str, Any]  # and of which epoch the model is
    rows: list[Row]


class Found(TypedDict):
    """What one epoch's evaluation found."""

    loss: dict[str, Any]
    rows: list[Row]
    test: NotRequired[Tested]  # before training, of a task that has a test set


@dataclass(frozen=True)
class Tuned:
    """What fine-tuning wrote down: predictions and losses of every epoch, and how fast it was."""

    rows: list[Row]  # each with its epoch
    losses: list[dict[str, Any]]  # `kept` says of which epoch the weights are
    speed: Speed
    drawn: list[int] | None = None  # numbers of the training examples, where not all were trained on
    tests: tuple[Tested, ...] = ()  # before training and with the kept weights, of a task that has a test set


def fine_tune(
    task: Task[Example], model: nn.Module, settings: FineTuneSettings, seed: int, device: Device, title: str,
    checkpointer: Checkpointer | None = None,
) -> Tuned:  # fmt: skip
    """Train `model` and leave it with the kept epoch's weights."""
    objective = TaskObjective(task, settings, seed, device.torch_device)
    held_out = task.examples("dev")
    run = Run(title, model, objective, device, settings.optimizer, settings.lr, Budget(settings.epochs), checkpointer)

    def after_epoch(epoch: Epoch, meter: Meter) -> Found:
        scores, loss = answer(task, model, held_out, 2 * settings.batch_size, device)
        _check_loss(loss, f"{title}: the validation loss", epoch.number, settings)
        meter.say(f"{title}  epoch {epoch.number}  validation loss {loss:.4f}")
        better = all(loss < found["loss"]["validation_loss"] for found in run.journal[1:])
        kept = bool(epoch.number) and (better or settings.checkpoint == "last")
        if kept:
            for earlier in run.journal:
                earlier["loss"]["kept"] = False
            run.kept.update({name: value.cpu().clone() for name, value in gather_weights(model).items()})
        losses = {"epoch": epoch.number, "training_loss": epoch.loss, "validation_loss": loss, "kept": kept}
        rows = [{"epoch": epoch.number, **row} for row in task.rows(held_out, scores)]
        if epoch.number == 0 and task.has_test:
            return {"loss": losses, "rows": rows, "test": answer_test(task, model, 0, settings, device, title)}
        return {"loss": losses, "rows": rows}

    speed = train(run, after_epoch)
    load_weights(model, run.kept)
    found: list[Found] = run.journal
    rows, losses = [row for epoch in found for row in epoch["rows"]], [epoch["loss"] for epoch in found]
    tests = [epoch["test"] for epoch in found if "test" in epoch]
    if task.has_test:
        (kept,) = (loss["epoch"] for loss in losses if loss["kept"])
        tests.append(answer_test(task, model, kept, settings, device, title))
    return Tuned(rows, losses, speed, objective.drawn, tuple(tests))


def answer_test(
    task: Task[Example], model: nn.Module, epoch: int, settings: FineTuneSettings, device: Device, title: str
) -> Tested:
    """What the model, as it is after `epoch`, answers on the test set."""
    examples = task.examples("test")
    scores, loss = answer(task, model, examples, 2 * settings.batch_size, device)
    _check_loss(loss, f"{title}: the test loss", epoch, settings)
    rows = [{"epoch": epoch, **row} for row in task.rows(examples, scores)]
    return {"loss": {"epoch": epoch, "loss": loss, "kept": epoch > 0}, "rows": rows}


def write_predictions(path: Path, tuned: Tuned) -> None:
    """Write the folder that `retrace.results.predictions` reads."""
    with atomic_folder(path) as folder:
        pq.write_table(pa.Table.from_pylist(tuned.rows), folder / PREDICTIONS)
        write_json(folder / LOSSES, tuned.losses)
        write_json(folder / UPDATES, tuned.speed.points)
        if tuned.drawn is not None:
            write_text(folder / DRAWN, f"{json.dumps(tuned.drawn)}\n")
        if tuned.tests:
            rows = [row for tested in tuned.tests for row in tested["rows"]]
            pq.write_table(pa.Table.from_pylist(rows), folder / TEST_PREDICTIONS)
            write_json(folder / TEST_LOSSES, [tested["loss"] for tested in tuned.tests])


def _check_loss(loss: float, what: str, epoch: int, settings: FineTuneSettings) -> None:
    """Raise InputError where a model gives no finite numbers."""
    if not math.isfinite(loss):
        raise InputError(f"{what} is {loss} at epoch {epoch}; a lower lr than {settings.lr} may help")


def _moved(tensors: Tensors, device: torch.device) -> Tensors:
    return {name: tensor.to(device) for name, tensor in tensors.items()}
