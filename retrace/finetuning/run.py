"""One cell of the fine-tuning matrix: a task by a method from a seed."""

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from retrace.compute.device import open_device
from retrace.compute.sharding import gather_weights, to_device
from retrace.core.files import atomic_folder
from retrace.core.guard import guarded
from retrace.core.settings import Precision
from retrace.finetuning.finetune import fine_tune, write_tuned
from retrace.finetuning.method import Method, is_part, round_frozen, save_trained
from retrace.finetuning.settings import FineTuneSettings, MethodSettings
from retrace.finetuning.task import Task
from retrace.models.heads import check_length, set_dropout
from retrace.results.grid import PREDICTIONS, RUNS, WEIGHTS, Cell
from retrace.tokens.tokenizer import copy_tokenizer
from retrace.training.checkpoint import Checkpointer
from retrace.training.out_of_memory import named_out_of_memory
from retrace.training.throughput import write_run_record

Example = TypeVar("Example")


def read_cell(task: str) -> Cell:
    """The cell that the command line names; `task` is the default."""
    parser = argparse.ArgumentParser(description="Fine-tune the pretrained model.")
    parser.add_argument("--task", default=task, help=f"{task} or a further task of data/params.yaml")
    parser.add_argument("--method", required=True, help="a file of retrace/methods: how the model is tuned")
    parser.add_argument("--seed", required=True, type=int, help="draws the head, the order and the dropout")
    return Cell(**vars(parser.parse_args()))


def run_cell(
    cell: Cell, method: Method, read_task: Callable[[], Task[Example]], settings: FineTuneSettings,
    precision: Precision, inputs: Sequence[Path], read: Mapping[str, Any],
) -> None:  # fmt: skip
    """Fine-tune and write weights, predictions, losses and speed.

    `inputs` is what the task is read from, `read` the sections of params.yaml that all this is from, by dotted key.
    Raises InputError where examples are longer than the model reads.
    """
    base, settings = method.base, adjusted(settings, method.settings)
    device = open_device(cell.seed, precision)
    name = "-".join(cell.path.parts)
    with guarded(f"{name}-{device.rank}", [base, *inputs], read) as guard, named_out_of_memory(cell.title):
        check_length(f"{cell.task}.max_length", settings.max_length, base)
        task = read_task()
        started = method.start(task.head, base, cell.seed, device.attention, task.classes)
        if settings.dropout is not None:
            set_dropout(started, settings.dropout)
        if is_part(started) and device.bf16 and not device.sharded:  # sharded ones are gathered in bf16
            round_frozen(started)
        model = to_device(task.wrap(started), device)
        checkpointer = Checkpointer(name, guard.digest(), device)
        tuned = fine_tune(task, model, settings, cell.seed, device, cell.title, checkpointer)
        weights = gather_weights(model)
        if device.is_main:
            with atomic_folder(WEIGHTS / cell.path, summed=True) as folder:
                if is_part(model):
                    save_trained(model, weights, folder)
                else:
                    model.save_pretrained(folder, state_dict=weights)  # pyright: ignore[reportCallIssue] - they all have it
                copy_tokenizer(base, folder)
            write_tuned(PREDICTIONS / cell.path, tuned)
            write_run_record(RUNS / cell.path.with_suffix(".json"), tuned.speed, device, model)
    checkpointer.remove()  # not before the guard has found everything as it was


def adjusted(settings: FineTuneSettings, method: MethodSettings) -> FineTuneSettings:
    """The task's settings with the method's own learning rate, epochs and optimizer."""
    optimizer = settings.optimizer.model_copy(update={"kind": method.optimizer or settings.optimizer.kind})
    epochs = math.ceil(round(settings.epochs * method.epochs_factor, 6))  # 10 × 1.1 is a little above 11
    return settings.model_copy(update={"lr": settings.lr * method.lr_factor, "epochs": epochs, "optimizer": optimizer})
