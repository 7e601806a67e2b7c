"""The disk and the memory that all runs of params.yaml take, known before the first of them."""

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import torch
from transformers import PreTrainedConfig

from retrace.compute.device import uses_bf16
from retrace.core.errors import InputError
from retrace.core.files import size
from retrace.core.paths import CHECKPOINT, named_checkpoint
from retrace.core.settings import Precision, build
from retrace.estimates.architectures import described, find_model
from retrace.estimates.memory import FLOAT, Load, Needs, pretraining_needs, update_needs
from retrace.finetuning.method import PRETRAINED, read_method
from retrace.finetuning.run import adjusted
from retrace.finetuning.settings import FineTuneSettings
from retrace.hub.pins import Pin, read_initial_checkpoint
from retrace.models.heads import Head, read_config
from retrace.pretraining.settings import PretrainSettings
from retrace.results.grid import WEIGHTS, Cell, Grid
from retrace.tasks.question_answering.settings import AnswerSettings

PRESETS = {
    "google-bert/bert-base-uncased": "bert-base",
    "FacebookAI/roberta-base": "roberta-base",
    "allenai/scibert_scivocab_uncased": "scibert",
    "meta-llama/Llama-3.2-1B": "llama-3.2-1b",
}  # of repositories of the hub
FETCHED, TRAINED, STATES = 3, 2, 3  # copies: hub's cache, folder, DVC's; folder, DVC's; two kept, one being written
PRETRAINING = "pretrain"
PROMPT = 2  # tokens of a written answer beside its words: those that begin and end it


@dataclass(frozen=True)
class Planned:
    """A training run that is still to come."""

    name: str
    fetched: Path | None  # where the checkpoint goes that it starts from
    needs: Needs
    is_done: bool = False

    @property
    def saved(self) -> int:
        """Bytes of the weights that it leaves: those that it trains."""
        return self.needs.gradients

    @property
    def state(self) -> int:
        """Bytes of a state: weights, moments and, of fine-tuning, the weights that are kept of the best epoch."""
        return self.needs.checkpoint + (0 if self.name == PRETRAINING else self.saved)


def require_room(params: Mapping[str, Any]) -> Iterator[str]:
    """What is needed and what there is, line by line.

    Raises InputError where it is clearly too little: more memory than the one device has at all, or twice the disk.
    """
    configs = _configs(params)
    runs = list(_runs(params, configs))
    unknown = [name or "model" for name, config in configs.items() if config is None]
    if unknown:
        yield f"needs: the sizes of {', '.join(unknown)} are not known before they are fetched, and left out"
    if not runs:
        return
    disk, free = _disk(runs), shutil.disk_usage(".").free
    largest = max(runs, key=lambda run: run.needs.peak)
    available, whole, place = _memory()
    yield f"needs: about {size(disk)} of disk for models and states; {size(free)} are free"
    yield (
        f"needs: about {size(largest.needs.peak)} of memory for the tensors of {largest.name} on one device; "
        f"{size(available)} of {size(whole)} are free {place}"
    )
    is_shared = _is_fsdp() or bool(os.environ.get("RETRACE_LAUNCH"))  # then one device need not hold it all
    if largest.needs.peak > whole and not is_shared:
        raise InputError(
            f"{largest.name}: it needs about {size(largest.needs.peak)} of memory; {size(whole)} {place}; "
            "RETRACE_MICRO_BATCH and RETRACE_ACTIVATION_CHECKPOINTING take less"
        )
    if disk > 2 * free:
        raise InputError(f"{Path.cwd()}: the runs need about {size(disk)} of disk; {size(free)} are free")


def planned_memory(params: Mapping[str, Any], name: str) -> int | None:
    """Bytes that the tensors of the run `name` take on each of the devices that share it; None where it is unknown."""
    processes, is_fsdp = int(os.environ.get("WORLD_SIZE", "1")), _is_fsdp()
    found = _runs(params, _configs(params), processes, name)
    return next((run.needs.memory(processes, is_fsdp) for run in found if run.name == name), None)


def _is_fsdp() -> bool:
    return os.environ.get("ACCELERATE_USE_FSDP", "").lower() == "true"


def _configs(params: Mapping[str, Any]) -> dict[str | None, PreTrainedConfig | None]:
    """The config of each model that is tuned, by its name, None for the one that is pretrained here."""
    grid = build(Grid, params, "finetune")
    bases = dict.fromkeys(read_method(params, label).settings.checkpoint for label in grid.every_method)
    return {name: config_of(params, name) for name in bases}


def config_of(params: Mapping[str, Any], name: str | None = None) -> PreTrainedConfig | None:
    """The config of the model that is pretrained here, or of the entry of that name under `checkpoints`.

    Of a checkpoint: that of its folder, or of a preset before it is fetched; None where neither is there.
    """
    folder = CHECKPOINT if name is None else named_checkpoint(name)
    if (folder / "config.json").is_file():
        return read_config(folder)
    origin = read_initial_checkpoint(params, name).origin
    if origin is None:
        return described(params)
    preset = PRESETS.get(origin.repository) if isinstance(origin, Pin) else None
    return find_model(preset).config if preset else None


def _runs(
    params: Mapping[str, Any], configs: Mapping[str | None, PreTrainedConfig | None], processes: int = 1,
    only: str | None = None,
) -> Iterator[Planned]:  # fmt: skip
    """Pretraining, where there is any, and every cell of the matrix whose model's sizes are known, or `only` one."""
    kind = "cuda" if torch.cuda.is_available() else "cpu"
    bf16 = uses_bf16(build(Precision, params, "precision"), torch.device(kind))
    attention = "sdpa" if kind == "cuda" else "lean"
    own = configs.get(None)
    if own is not None and only in (None, PRETRAINING):
        recipe = build(PretrainSettings, params, "pretrain")
        needs = pretraining_needs(own, recipe, -(-recipe.batch_size // processes), bf16, attention)
        starts = read_initial_checkpoint(params).origin is not None
        yield Planned(PRETRAINING, CHECKPOINT if starts else None, needs, PRETRAINED.is_dir())
    grid = build(Grid, params, "finetune")
    for task in grid.all_tasks:
        is_read = grid.kind_of(task) == "question_answering"
        for label in grid.methods_of(task):
            method = read_method(params, label, task)
            config = configs[method.settings.checkpoint]
            cells = [cell for seed in grid.seeds if only in (None, (cell := Cell(task, label, seed)).title)]
            if config is None or not cells:
                continue
            settings = adjusted(build(AnswerSettings if is_read else FineTuneSettings, params, task), method.settings)
            head, written = _head(settings)
            batch = -(-settings.batch_size // processes)
            length = getattr(settings, "train_length", None) or settings.max_length
            load = Load(batch, length, batch * written, bf16, attention)
            needs = update_needs(head, config, load, settings.optimizer, method.tune, settings.dropout)
            base = method.settings.checkpoint
            fetched = None if base is None else named_checkpoint(base)
            for cell in cells:
                yield Planned(cell.title, fetched, needs, (WEIGHTS / cell.path).is_dir())


def _head(settings: FineTuneSettings) -> tuple[Head, int]:
    """The head of a task, and how many tokens of an answer it writes."""
    if not isinstance(settings, AnswerSettings):
        return "classifier", 0
    return ("spans", 0) if settings.answers == "extractive" else ("language_model", settings.max_answer_length + PROMPT)


def _disk(runs: Iterable[Planned]) -> int:
    """Bytes that are still to be written."""
    left = [run for run in runs if not run.is_done]
    fetched = {
        run.fetched: FLOAT * run.needs.parameters
        for run in left
        if run.fetched is not None and not (run.fetched / "config.json").is_file()
    }
    states = STATES * max((run.state for run in left), default=0)
    return FETCHED * sum(fetched.values()) + TRAINED * sum(run.saved for run in left) + states


def _memory() -> tuple[int, int, str]:
    """Bytes free, bytes in all, and where."""
    if torch.cuda.is_available():
        return *torch.cuda.mem_get_info(), "on the GPU"
    memory = psutil.virtual_memory()
    return memory.available, memory.total, "in main memory"
