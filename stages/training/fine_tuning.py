"""Fine-tuning on a task: train, and before the first and after each epoch write down what the model answers.

The best epoch is the one with the lowest validation loss; its weights are kept, and epoch 0, the model
before any training, counts only in the curves.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from accelerate.utils import gather_object
from torch import Tensor, nn

from stages.harness.device import Device
from stages.harness.progress import Meter
from stages.harness.records import write_json, written_folder
from stages.tasks.predictions import LOSSES, PREDICTIONS
from stages.tasks.task import Row, Task, Tensors
from stages.training.buckets import bucketed
from stages.training.loop import Run, Speed, train
from stages.training.randomness import seeded
from stages.training.settings import FineTuneSettings

Example = TypeVar("Example")


class TaskObjective(Generic[Example]):
    """A task's training examples as the loop wants them."""

    def __init__(self, task: Task[Example], settings: FineTuneSettings, seed: int, device: torch.device) -> None:
        self._task, self._settings, self._seed, self._device = task, settings, seed, device
        examples = task.examples("train")
        order = torch.randperm(len(examples), generator=seeded(seed, "subset")).tolist()[: settings.examples]
        self._examples = [examples[index] for index in sorted(order)]
        self._lengths = [task.length(example) for example in self._examples]
        self.steps = len(self._epoch(1))

    def _epoch(self, epoch: int) -> list[list[int]]:
        return bucketed(self._lengths, self._settings.batch_size, seeded(self._seed, f"fine-tuning epoch {epoch}"))

    def batches(self, epoch: int, share: slice) -> list[list[int]]:
        """The epoch's batches as indices of examples."""
        return [batch[share] or batch[:1] for batch in self._epoch(epoch)]

    def loss(self, model: nn.Module, batch: list[int]) -> tuple[Tensor, int]:
        """The task's summed loss."""
        tensors = _moved(self._task.collate([self._examples[index] for index in batch]), self._device)
        return self._task.loss(self._task.scores(model, tensors), tensors)

    def tokens(self, batch: list[int]) -> int:
        """Real tokens of the examples."""
        return sum(self._lengths[index] for index in batch)


@torch.no_grad()
def answer(
    task: Task[Example], model: nn.Module, examples: Sequence[Example], batch_size: int, device: Device
) -> tuple[list[np.ndarray], float]:
    """The scores of every example, in order and without padding, and the mean loss in nats."""
    order = sorted(range(len(examples)), key=lambda index: task.length(examples[index]))
    batches = [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
    found: list[tuple[int, np.ndarray]] = []
    losses: list[float] = []
    for indices in batches[device.rank :: device.processes]:
        tensors = _moved(task.collate([examples[index] for index in indices]), device.place)
        with device.autocast():
            scores = task.scores(model, tensors)
        losses.append(task.loss(scores, tensors)[0].item())
        rows = scores.float().cpu().numpy()
        for index, row in zip(indices, rows, strict=True):
            found.append((index, row[: task.length(examples[index])] if row.ndim > 1 else row))
    if device.processes > 1:
        found, losses = gather_object(found), gather_object(losses)
    found.sort(key=lambda item: item[0])
    return [row for _, row in found], sum(losses) / len(examples)


@dataclass(frozen=True)
class Tuned:
    """What fine-tuning wrote down: predictions and losses of every epoch, and how fast it was."""

    rows: list[Row]  # each with its epoch
    losses: list[dict[str, float | int | None]]
    speed: Speed


def fine_tune(
    task: Task[Example], model: nn.Module, settings: FineTuneSettings, seed: int, device: Device, title: str
) -> Tuned:
    """Train `model` and leave it with the best epoch's weights."""
    objective = TaskObjective(task, settings, seed, device.place)
    held_out = task.examples("dev")
    rows: list[Row] = []
    losses: list[dict[str, float | int | None]] = []
    best: dict[str, Tensor] = {}
    lowest = math.inf

    def after_epoch(epoch: int, training_loss: float | None, meter: Meter) -> None:
        nonlocal lowest
        model.eval()
        scores, loss = answer(task, model, held_out, 2 * settings.batch_size, device)
        rows.extend({"epoch": epoch, **row} for row in task.rows(held_out, scores))
        losses.append({"epoch": epoch, "training_loss": training_loss, "validation_loss": loss})
        if epoch and loss < lowest:
            lowest = loss
            best.update({name: value.detach().cpu().clone() for name, value in model.state_dict().items()})
        meter.say(f"{title}  epoch {epoch}  validation loss {loss:.4f}")

    run = Run(title, model, objective, device, settings.optimiser, settings.lr, settings.epochs)
    speed = train(run, after_epoch)
    model.load_state_dict(best)
    return Tuned(rows, losses, speed)


def write_predictions(path: Path, tuned: Tuned) -> None:
    """Write the folder that `stages.tasks.predictions` reads."""
    with written_folder(path) as folder:
        pq.write_table(pa.Table.from_pylist(tuned.rows), folder / PREDICTIONS)
        write_json(folder / LOSSES, tuned.losses)


def _moved(tensors: Tensors, device: torch.device) -> Tensors:
    return {name: tensor.to(device) for name, tensor in tensors.items()}
