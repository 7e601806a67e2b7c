"""One cell of the fine-tuning grid, a task with a method and a seed: train, and write the predictions of every epoch.

The weights of one epoch are kept, the one with the lowest validation loss or the last, and its predictions are scored.
Epoch 0, before training, is never kept. The test set is not used for this choice; it is predicted only before training
and with the kept weights. No metrics are computed here: `stages.evaluate` scores the predictions.
"""

import argparse
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, NotRequired, TypedDict

import torch
from torch import Tensor, nn

from retrace.compute.device import Device, named_out_of_memory, open_device
from retrace.compute.sharding import gather_weights, load_weights, to_device
from retrace.compute.tensors import rounded_up, seeded
from retrace.core.errors import DivergedError
from retrace.core.files import atomic_folder, write_json, write_text
from retrace.core.guard import guarded
from retrace.finetuning.features import Parts, computed_once
from retrace.finetuning.method import has_added, has_frozen, read_method, round_frozen, save_trained
from retrace.finetuning.rdrop import rdrop_loss
from retrace.finetuning.settings import INPUT_LENGTHS, FineTuneParams, FineTuneSettings, MethodSettings
from retrace.finetuning.task import Example, Row, Task, Tensors, moved, predict
from retrace.models.heads import check_length, read_config
from retrace.results import grid, predictions
from retrace.results.grid import Cell, Kind
from retrace.tokens.tokenizer import copy_tokenizer
from retrace.training.checkpoint import Checkpointer
from retrace.training.loop import Epoch, Run, train
from retrace.training.progress import Meter
from retrace.training.throughput import Speed, write_run_record

LENGTHS = 6  # number of input lengths that a model is compiled for
POOL = 100  # batches that are sorted by length together: 2% padding on SST-2; a larger pool is less random


def bucketed(lengths: Sequence[int], batch_size: int, generator: torch.Generator) -> list[list[int]]:
    """The indices of all examples in batches of similar length, in random order; a pool's last batch may be smaller."""
    order = torch.randperm(len(lengths), generator=generator).tolist()
    batches = []
    for start in range(0, len(order), batch_size * POOL):
        pool = sorted(order[start : start + batch_size * POOL], key=lambda index: lengths[index])
        batches += [pool[first : first + batch_size] for first in range(0, len(pool), batch_size)]
    return [batches[index] for index in torch.randperm(len(batches), generator=generator).tolist()]


class TaskObjective(Generic[Example]):
    """A task's training examples for the training loop; a batch is a list of their indices."""

    def __init__(self, task: Task[Example], settings: FineTuneSettings, seed: int) -> None:
        self._task, self._settings, self._seed = task, settings, seed
        examples = task.examples("train")
        order = torch.randperm(len(examples), generator=seeded(seed, "subset")).tolist()[: settings.max_train_examples]
        self.drawn = sorted(order) if len(order) < len(examples) else None  # indices; None for all
        self.examples: Sequence[Example] = [examples[index] for index in sorted(order)]
        self._lengths = [task.length(example) for example in self.examples]
        self._longest = max(self._lengths, default=0)
        self.steps = len(self.batches(1))

    def batches(self, epoch: int) -> list[list[int]]:
        """The epoch's batches of similar length."""
        return bucketed(self._lengths, self._settings.batch_size, seeded(self._seed, f"fine-tuning epoch {epoch}"))

    def sizes(self, batch: list[int]) -> tuple[int, int]:
        targets = sum(self._task.targets(self.examples[index]) for index in batch)
        return targets, sum(self._lengths[index] for index in batch)

    def part(self, batch: list[int], rows: slice, device: Device) -> Tensors:
        """Some of the examples, collated."""
        chosen = batch[rows]
        longest = max(self._lengths[index] for index in chosen)
        length = rounded_up(longest, self._longest, LENGTHS) if device.compiler else None
        return moved(self._task.collate([self.examples[index] for index in chosen], length), device)

    def loss(self, model: nn.Module, part: Tensors) -> Tensor:
        if self._settings.rdrop:
            return rdrop_loss(self._task, model, part, self._settings.rdrop)
        return self._task.loss(self._task.scores(model, part), part)


class Predicted(TypedDict):
    """Losses and predictions of one epoch on the validation set and, before training, on the test set."""

    loss: dict[str, Any]
    rows: list[Row]
    test: NotRequired["Predicted"]


@dataclass(frozen=True)
class Tuned:
    """Predictions and losses by split, and the speed of training."""

    kind: Kind
    epochs: dict[str, list[Predicted]]  # dev: every epoch; test, if there is one: before training and the kept epoch
    speed: Speed
    drawn: list[int] | None  # indices of the training examples; None for all


def fine_tune(
    task: Task[Example], model: nn.Module, settings: FineTuneSettings, seed: int, device: Device, title: str,
    checkpointer: Checkpointer | None = None,
) -> Tuned:  # fmt: skip
    """Train `model`, and leave it with the weights of the kept epoch."""
    objective = TaskObjective(task, settings, seed)
    parts = {"train": objective.examples, "dev": task.examples("dev")}
    if task.has_test:
        parts["test"] = task.examples("test")
    if device.is_main:
        _note_truncated(task, parts, settings.max_length, title)
    with computed_once(task, model, parts, 2 * settings.batch_size, device) as prepared:
        if prepared.parts is not parts:
            device = replace(device, compiler=None)  # compiling gains nothing for a head alone
        objective.examples = prepared.parts["train"]
        run = Run(title, model, objective, device, settings.optimizer, settings.lr, settings.epochs, None, checkpointer)
        recorder = _Recorder(task, run, prepared.parts, settings)
        speed = train(run, recorder.after_epoch)
        # The features are computed once, in place of the body's forward pass in every update.
        speed = replace(speed, seconds=speed.seconds + prepared.seconds, flops=speed.flops + prepared.flops)
        if settings.checkpoint == "best":
            load_weights(model, run.kept)
        epochs: dict[str, list[Predicted]] = {"dev": run.journal}
        if task.has_test:
            (kept,) = (epoch["loss"]["epoch"] for epoch in run.journal if epoch["loss"]["kept"])
            epochs["test"] = [run.journal[0]["test"], recorder.tested(kept)]
    return Tuned(task.kind, epochs, speed, objective.drawn)


def _note_truncated(task: Task[Example], parts: Parts[Example], longest: int, title: str) -> None:
    """Print how many texts of each split the model does not read whole."""
    for part, examples in parts.items():
        count = sum(map(task.is_truncated, examples))
        if count:
            share = f"{count:,} of {len(examples):,} texts of {part}"
            print(f"{title}  {share} are longer than {longest} tokens and truncated", flush=True)


class _Recorder(Generic[Example]):
    """Predicts before training and after every epoch, and keeps the weights of one."""

    def __init__(self, task: Task[Example], run: Run, parts: Parts[Example], settings: FineTuneSettings) -> None:
        self._task, self._run, self._parts, self._settings = task, run, parts, settings

    def after_epoch(self, epoch: Epoch, meter: Meter) -> Predicted:
        """Losses and predictions of an epoch."""
        run = self._run
        loss, rows = self._predicted("dev", epoch.number)
        meter.say(f"{run.title}  epoch {epoch.number}  validation loss {loss:.4f}")
        better = all(loss < found["loss"]["validation_loss"] for found in run.journal[1:])
        kept = bool(epoch.number) and (better or self._settings.checkpoint == "last")
        if kept:
            for earlier in run.journal:
                earlier["loss"]["kept"] = False
            if self._settings.checkpoint == "best":  # the last epoch's are in the model at the end
                trained = gather_weights(run.model, only_trained=True)
                run.kept.update({name: value.to("cpu", copy=True) for name, value in trained.items()})
        losses = {"epoch": epoch.number, "training_loss": epoch.loss, "validation_loss": loss, "kept": kept}
        predicted = Predicted(loss=losses, rows=rows)
        if epoch.number == 0 and self._task.has_test:
            predicted["test"] = self.tested(0)
        return predicted

    def tested(self, epoch: int) -> Predicted:
        """Loss and predictions on the test set with the model's weights, which are those after `epoch`."""
        loss, rows = self._predicted("test", epoch)
        return {"loss": {"epoch": epoch, "loss": loss, "kept": epoch > 0}, "rows": rows}

    def _predicted(self, part: str, epoch: int) -> tuple[float, list[Row]]:
        """The loss and the predictions on a split; raises DivergedError if the loss is not finite."""
        run, examples = self._run, self._parts[part]
        scores, loss = predict(self._task, run.model, examples, 2 * self._settings.batch_size, run.device)
        if not math.isfinite(loss):
            said = f"the {'validation' if part == 'dev' else part} loss is {loss} at epoch {epoch}"
            raise DivergedError(f"{run.title}: {said}; a lower lr than {run.lr:g} may help")
        return loss, [{"epoch": epoch, **row} for row in self._task.rows(examples, scores)]


def write_tuned(path: Path, tuned: Tuned) -> None:
    """Write the folder that `retrace.results.predictions` reads."""
    with atomic_folder(path, summed=True) as folder:
        for part, epochs in tuned.epochs.items():
            rows, losses, _ = predictions.FILES[part]
            predictions.write_predictions(folder / rows, tuned.kind, [row for epoch in epochs for row in epoch["rows"]])
            write_json(folder / losses, [epoch["loss"] for epoch in epochs])
        write_json(folder / predictions.UPDATES, tuned.speed.points)
        if tuned.drawn is not None:
            write_text(folder / predictions.DRAWN, f"{json.dumps(tuned.drawn)}\n")


def read_cell(task: str) -> Cell:
    """The cell named on the command line; `task` is the default."""
    parser = argparse.ArgumentParser(description="Fine-tune the pretrained model.")
    parser.add_argument("--task", default=task, help=f"{task} or a further task of data/params.yaml")
    parser.add_argument("--method", required=True, help="an entry under methods in params.yaml: how the model is tuned")
    parser.add_argument("--seed", required=True, type=int, help="seed of the new head, the data order and dropout")
    return Cell(**vars(parser.parse_args()))


def run_cell(
    cell: Cell, params: FineTuneParams, folder: Path, read_task: Callable[[Path, Path, Any], Task[Any]]
) -> None:
    """Fine-tune and write weights, predictions, losses and speed.

    `read_task(folder, base, settings)` reads the task, whose data is in `folder`, for the model saved in `base`. Raises
    InputError if examples may be longer than the model's longest input.
    """
    method = read_method({"methods": {cell.method: params.entry}}, cell.method, cell.task)
    base, settings = method.base, adjusted(params.task, method.settings)
    device = open_device(cell.seed, params.precision)
    name, inputs = ".".join(cell.path.parts), [base, folder]
    with (
        guarded(f"{name}-{device.rank}", inputs, params.settings) as digest,
        device.together(),
        named_out_of_memory(cell.title),
    ):
        config = read_config(base)
        for key in INPUT_LENGTHS:
            check_length(f"params.yaml: {cell.task}.{key}", getattr(settings, key, None), config, base)
        task = read_task(folder, base, settings)
        started = method.start(task.head, base, cell.seed, device.attention, task.classes, settings.dropout)
        if device.bf16 and not device.sharded:  # sharded weights are gathered in bf16
            round_frozen(started)
        model = to_device(task.wrap(started), device)
        checkpointer = Checkpointer(name, digest(), device)
        tuned = fine_tune(task, model, settings, cell.seed, device, cell.title, checkpointer)
        is_part = has_frozen(model) or has_added(started)
        weights = gather_weights(model, only_trained=is_part)
        if device.is_main:
            with atomic_folder(grid.WEIGHTS / cell.path, summed=True) as made:
                if is_part:
                    save_trained(weights, made)
                else:
                    model.save_pretrained(made, state_dict=weights)  # pyright: ignore[reportCallIssue] - all have it
                copy_tokenizer(base, made)
            write_tuned(grid.PREDICTIONS / cell.path, tuned)
            write_run_record(grid.RUNS / cell.path.with_suffix(".json"), tuned.speed, device, model)
    checkpointer.remove()  # only after the guard has found everything unchanged


def adjusted(settings: FineTuneSettings, method: MethodSettings) -> FineTuneSettings:
    """The task's settings with the method's learning rate, epochs and optimizer."""
    optimizer = settings.optimizer.model_copy(update={"kind": method.optimizer or settings.optimizer.kind})
    epochs = max(1, math.ceil(round(settings.epochs * method.epochs_factor, 6)))  # 10 × 1.1 is a little above 11
    return settings.model_copy(update={"lr": settings.lr * method.lr_factor, "epochs": epochs, "optimizer": optimizer})
