"""Fine-tuning on a task: train, and record predictions before training and after every epoch.

The weights of one epoch are kept, and its predictions are scored: the epoch of the lowest validation loss, or the last.
Epoch 0, before training, is never kept. A test set has predictions before training and of the kept weights only, and
chooses nothing. A task computes no metric: it writes down what the model answered, and `stages.evaluate` scores it.
"""

import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, NotRequired, TypedDict

import torch
from torch import Tensor, nn

from retrace.compute.device import Device
from retrace.compute.sharding import gather_weights, load_weights
from retrace.compute.tensors import rounded_up, seeded
from retrace.core.errors import InputError
from retrace.core.files import atomic_folder, write_json, write_text
from retrace.finetuning.features import Parts, computed_once
from retrace.finetuning.settings import FineTuneSettings
from retrace.finetuning.task import Example, Row, Task, Tensors, moved, predict
from retrace.results.grid import Kind
from retrace.results.predictions import (
    DRAWN,
    LOSSES,
    PREDICTIONS,
    TEST_LOSSES,
    TEST_PREDICTIONS,
    UPDATES,
    write_predictions,
)
from retrace.training.checkpoint import Checkpointer
from retrace.training.loop import Budget, Epoch, Run, train
from retrace.training.progress import Meter
from retrace.training.throughput import Speed

LENGTHS = 6  # for which a model is compiled
POOL = 100  # batches that are sorted by length together: 2% of padding on SST-2; a larger pool is less random


def bucketed(lengths: Sequence[int], batch_size: int, generator: torch.Generator) -> list[list[int]]:
    """Indices of all examples in batches of similar length, in random order; the last of a pool may be smaller."""
    order = torch.randperm(len(lengths), generator=generator).tolist()
    batches = []
    for start in range(0, len(order), batch_size * POOL):
        pool = sorted(order[start : start + batch_size * POOL], key=lambda index: lengths[index])
        batches += [pool[first : first + batch_size] for first in range(0, len(pool), batch_size)]
    return [batches[index] for index in torch.randperm(len(batches), generator=generator).tolist()]


class TaskObjective(Generic[Example]):
    """A task's training examples for the training loop; a batch is a list of their numbers."""

    def __init__(self, task: Task[Example], settings: FineTuneSettings, seed: int) -> None:
        self._task, self._settings, self._seed = task, settings, seed
        examples = task.examples("train")
        order = torch.randperm(len(examples), generator=seeded(seed, "subset")).tolist()[: settings.max_train_examples]
        self.drawn = sorted(order) if len(order) < len(examples) else None  # numbers; None for all
        self.examples: Sequence[Example] = [examples[index] for index in sorted(order)]
        self._lengths = [task.length(example) for example in self.examples]
        self.steps = len(self.batches(1))

    def batches(self, epoch: int) -> list[list[int]]:
        """The epoch's batches of similar length."""
        return bucketed(self._lengths, self._settings.batch_size, seeded(self._seed, f"fine-tuning epoch {epoch}"))

    def targets(self, batch: list[int]) -> int:
        """The number of targets."""
        return sum(self._task.targets(self.examples[index]) for index in batch)

    def tokens(self, batch: list[int]) -> int:
        """Tokens without padding."""
        return sum(self._lengths[index] for index in batch)

    def part(self, batch: list[int], rows: slice, device: Device) -> Tensors:
        """Some of the examples, collated."""
        chosen = batch[rows]
        longest = max(self._lengths[index] for index in chosen)
        length = rounded_up(longest, max(self._lengths), LENGTHS) if device.compiler else None
        return moved(self._task.collate([self.examples[index] for index in chosen], length), device)

    def loss(self, model: nn.Module, part: Tensors) -> Tensor:
        """The task's summed loss."""
        return self._task.loss(self._task.scores(model, part), part)


class Predicted(TypedDict):
    """Losses and predictions of one epoch on the validation set and, before training, on the test set."""

    loss: dict[str, Any]
    rows: list[Row]
    test: NotRequired["Predicted"]


@dataclass(frozen=True)
class Tuned:
    """Predictions and losses of every epoch, and the speed of training."""

    kind: Kind
    rows: list[Row]  # with their epoch
    losses: list[dict[str, Any]]  # `kept`: whether the weights are of this epoch
    speed: Speed
    drawn: list[int] | None = None  # numbers of the training examples; None for all
    tests: tuple[Predicted, ...] = ()  # before training and of the kept epoch


def fine_tune(
    task: Task[Example], model: nn.Module, settings: FineTuneSettings, seed: int, device: Device, title: str,
    checkpointer: Checkpointer | None = None,
) -> Tuned:  # fmt: skip
    """Train `model`, and leave it with the weights of the epoch that is kept."""
    objective = TaskObjective(task, settings, seed)
    parts = {"train": objective.examples, "dev": task.examples("dev")}
    if task.has_test:
        parts["test"] = task.examples("test")
    began = time.monotonic()
    with computed_once(task, model, parts, 2 * settings.batch_size, device) as computed:
        if computed is not parts:
            device = replace(device, compiler=None)  # a head alone gains nothing
        parts = computed
        before = time.monotonic() - began  # of features, which take the place of the body's part in every update
        objective.examples = parts["train"]
        budget = Budget(settings.epochs)
        run = Run(title, model, objective, device, settings.optimizer, settings.lr, budget, checkpointer)
        speed, tests = _tune(task, run, parts, settings)
    found: list[Predicted] = run.journal
    rows, losses = [row for epoch in found for row in epoch["rows"]], [epoch["loss"] for epoch in found]
    speed = replace(speed, seconds=before + speed.seconds)
    return Tuned(task.kind, rows, losses, speed, objective.drawn, tests)


def _tune(
    task: Task[Example], run: Run, parts: Parts[Example], settings: FineTuneSettings
) -> tuple[Speed, tuple[Predicted, ...]]:
    """Train, and take the weights of the epoch that is kept; returns the predictions on the test set too."""

    def after_epoch(epoch: Epoch, meter: Meter) -> Predicted:
        loss, rows = _answered(task, run, "validation", parts["dev"], epoch.number, settings.batch_size)
        meter.say(f"{run.title}  epoch {epoch.number}  validation loss {loss:.4f}")
        better = all(loss < found["loss"]["validation_loss"] for found in run.journal[1:])
        kept = bool(epoch.number) and (better or settings.checkpoint == "last")
        if kept:
            for earlier in run.journal:
                earlier["loss"]["kept"] = False
            run.kept.update(
                {name: value.cpu().clone() for name, value in gather_weights(run.model, only_trained=True).items()}
            )
        losses = {"epoch": epoch.number, "training_loss": epoch.loss, "validation_loss": loss, "kept": kept}
        predicted = Predicted(loss=losses, rows=rows)
        if epoch.number == 0 and "test" in parts:
            predicted["test"] = _tested(task, run, parts["test"], 0, settings.batch_size)
        return predicted

    speed = train(run, after_epoch)
    load_weights(run.model, run.kept)
    if "test" not in parts:
        return speed, ()
    (kept,) = (found["loss"]["epoch"] for found in run.journal if found["loss"]["kept"])
    last = _tested(task, run, parts["test"], kept, settings.batch_size)
    return speed, (run.journal[0]["test"], last)


def _tested(task: Task[Example], run: Run, examples: Sequence[Example], epoch: int, batch_size: int) -> Predicted:
    """Predictions on the test set."""
    loss, rows = _answered(task, run, "test", examples, epoch, batch_size)
    return {"loss": {"epoch": epoch, "loss": loss, "kept": epoch > 0}, "rows": rows}


def _answered(
    task: Task[Example], run: Run, part: str, examples: Sequence[Example], epoch: int, batch_size: int
) -> tuple[float, list[Row]]:
    """The loss and the answers on the validation or the test set, by the weights after `epoch`."""
    scores, loss = predict(task, run.model, examples, 2 * batch_size, run.device)
    if not math.isfinite(loss):
        raise InputError(f"{run.title}: the {part} loss is {loss} at epoch {epoch}; a lower lr than {run.lr} may help")
    return loss, [{"epoch": epoch, **row} for row in task.rows(examples, scores)]


def write_tuned(path: Path, tuned: Tuned) -> None:
    """Write the folder that `retrace.results.predictions` reads."""
    with atomic_folder(path, summed=True) as folder:
        write_predictions(folder / PREDICTIONS, tuned.kind, tuned.rows)
        write_json(folder / LOSSES, tuned.losses)
        write_json(folder / UPDATES, tuned.speed.points)
        if tuned.drawn is not None:
            write_text(folder / DRAWN, f"{json.dumps(tuned.drawn)}\n")
        if tuned.tests:
            rows = [row for tested in tuned.tests for row in tested["rows"]]
            write_predictions(folder / TEST_PREDICTIONS, tuned.kind, rows)
            write_json(folder / TEST_LOSSES, [tested["loss"] for tested in tuned.tests])
