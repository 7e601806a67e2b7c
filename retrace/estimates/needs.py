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

from retrace.core.errors import InputError
from retrace.core.files import size
from retrace.core.paths import CHECKPOINT, named_checkpoint
from retrace.core.settings import build, section
from retrace.estimates.architectures import config_of, find_model
from retrace.estimates.memory import Load, Needs, pretraining_needs, tuning_needs
from retrace.finetuning.method import PRETRAINED, read_method
from retrace.finetuning.run import WEIGHTS, Cell, adjusted
from retrace.finetuning.settings import FineTuneSettings
from retrace.hub.checkpoint import Pin, read_initial_checkpoint
from retrace.models.heads import Head, read_config
from retrace.pretraining.settings import PretrainSettings
from retrace.results.grid import Grid
from retrace.tasks.question_answering.settings import SquadSettings

PRESETS = {
    "google-bert/bert-base-uncased": "bert-base",
    "FacebookAI/roberta-base": "roberta-base",
    "allenai/scibert_scivocab_uncased": "scibert",
    "meta-llama/Llama-3.2-1B": "llama-3.2-1b",
}  # whose sizes are known before they are fetched
FETCHED, TRAINED, STATES = 3, 2, 3  # copies: hub's cache, folder, DVC's; folder, DVC's; two kept, one being written
PROMPT = 2  # tokens of a written answer beside its words: those that begin and end it


@dataclass(frozen=True)
class Planned:
    """A training run that is still to come."""

    name: str
    base: str | None  # the model that it starts from
    needs: Needs
    is_done: bool = False

    @property
    def saved(self) -> int:
        """Bytes of the weights that it leaves: those that it trains."""
        return self.needs.gradients

    @property
    def state(self) -> int:
        """Bytes of a state: weights, those that are kept, and moments."""
        return 2 * self.saved + self.needs.moments


def require_room(params: Mapping[str, Any]) -> Iterator[str]:
    """What is needed and what there is, line by line.

    Raises InputError where it is clearly too little: more memory than the one device has at all, or twice the disk.
    """
    configs = {name: _config(params, name) for name in _bases(params)}
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
    if largest.needs.peak > whole and not _is_shared():
        raise InputError(f"{largest.name}: it needs about {size(largest.needs.peak)} of memory; {size(whole)} {place}")
    if disk > 2 * free:
        raise InputError(f"{Path.cwd()}: the runs need about {size(disk)} of disk; {size(free)} are free")


def _is_shared() -> bool:
    """Whether several devices are to share the work, so that one need not hold it all."""
    is_fsdp = os.environ.get("ACCELERATE_USE_FSDP", "").lower() == "true"
    return is_fsdp or os.environ.get("RETRACE_LAUNCH", "one") != "one"


def _bases(params: Mapping[str, Any]) -> list[str | None]:
    """The models that runs start from: entries of `checkpoints`, and None for the one that is pretrained here."""
    grid = build(Grid, params, "finetune")
    return list(dict.fromkeys(read_method(params, label).settings.checkpoint for label in grid.every_method))


def _config(params: Mapping[str, Any], name: str | None) -> PreTrainedConfig | None:
    """Of a model that was fetched, that params.yaml describes, or whose sizes are known; None of any other."""
    folder = CHECKPOINT if name is None else named_checkpoint(name)
    if (folder / "config.json").is_file():
        config = read_config(folder)
    else:
        start = read_initial_checkpoint(params, name)
        if start.origin is None:
            config = config_of(params)
        else:
            preset = PRESETS.get(start.origin.repository) if isinstance(start.origin, Pin) else None
            config = find_model(preset).config if preset else None
    if config is not None and config.pad_token_id is None:  # as in Llama's published config
        config.pad_token_id = 0
    return config


def _runs(params: Mapping[str, Any], configs: Mapping[str | None, PreTrainedConfig | None]) -> Iterator[Planned]:
    """Pretraining, where there is any, and every cell of the matrix whose model's sizes are known."""
    on_gpu = torch.cuda.is_available()
    bf16, attention = on_gpu and params.get("precision") != "fp32", "sdpa" if on_gpu else "eager"
    own = configs.get(None)
    if own is not None:
        recipe = build(PretrainSettings, params, "pretrain")
        needs = pretraining_needs(own, recipe, recipe.batch_size, bf16, attention)
        yield Planned("pretrain", None, needs, PRETRAINED.is_dir())
    grid = build(Grid, params, "finetune")
    for task in grid.all_tasks:
        is_read = grid.kind_of(task) == "question_answering"
        head: Head = _head_for_questions(params, task) if is_read else "classifier"
        for label in grid.methods_of(task):
            method = read_method(params, label, task)
            config = configs[method.settings.checkpoint]
            if config is None:
                continue
            settings = adjusted(build(SquadSettings if is_read else FineTuneSettings, params, task), method.settings)
            written = build(int, params, f"{task}.max_answer_length") + PROMPT if head == "language_model" else 0
            asked = settings.batch_size * written
            load = Load(settings.batch_size, settings.max_length, asked, bf16, attention)
            needs = tuning_needs(head, config, method.tune, load, settings.optimizer)
            for seed in grid.seeds:
                cell = Cell(task, label, seed)
                yield Planned(cell.title, method.settings.checkpoint, needs, (WEIGHTS / cell.path).is_dir())


def _head_for_questions(params: Mapping[str, Any], task: str) -> Head:
    return "language_model" if section(params, f"{task}.answers") == "generative" else "spans"


def _disk(runs: Iterable[Planned]) -> int:
    """Bytes that are still to be written."""
    left = [run for run in runs if not run.is_done]
    fetched = {run.base: run.needs.weights for run in left if run.base and not named_checkpoint(run.base).is_dir()}
    return (
        FETCHED * sum(fetched.values())
        + TRAINED * sum(run.saved for run in left)
        + STATES * max((run.state for run in left), default=0)
    )


def _memory() -> tuple[int, int, str]:
    """Bytes free, bytes in all, and where."""
    if torch.cuda.is_available():
        return *torch.cuda.mem_get_info(), "on the GPU"
    return *_main_memory(), "in main memory"


def _main_memory() -> tuple[int, int]:
    """Bytes free and bytes in all."""
    memory = psutil.virtual_memory()
    return memory.available, memory.total
