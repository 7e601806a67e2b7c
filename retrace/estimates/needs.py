"""The disk and memory that the runs of params.yaml need, estimated before the first of them starts."""

import math
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import torch
from transformers import PreTrainedConfig

from retrace.compute.device import attention_of, is_sharded, uses_bf16
from retrace.core.errors import InputError
from retrace.core.files import read_text, size
from retrace.core.paths import CHECKPOINT, FACTS, PRETRAINED, PROJECT, checkpoint_facts, named_checkpoint
from retrace.core.settings import Precision, build
from retrace.estimates.architectures import described, find_model
from retrace.estimates.memory import FLOAT, Load, Needs, update_needs
from retrace.finetuning.method import read_method
from retrace.finetuning.run import adjusted
from retrace.finetuning.settings import INPUT_LENGTHS, FineTuneSettings
from retrace.hub.pins import PinnedFolder, read_initial_checkpoint
from retrace.models.heads import Head, check_length, objective_of, read_config
from retrace.objectives.language_modelling import masked_of
from retrace.pretraining.settings import PretrainSettings
from retrace.results.grid import WEIGHTS, Grid
from retrace.tasks.question_answering.generative import ANSWERING
from retrace.tasks.question_answering.settings import AnswerSettings, settings_of

ARCHITECTURES = {
    "google-bert/bert-base-uncased": "bert-base",
    "FacebookAI/roberta-base": "roberta-base",
    "allenai/scibert_scivocab_uncased": "scibert",
    "meta-llama/Llama-3.2-1B": "llama-3.2-1b",
}  # by repository of the hub
FETCHED, TRAINED, STATES = 3, 2, 3  # copies: hub's cache, folder, DVC's; folder, DVC's; two kept, one being written
LIMIT = Path("/sys/fs/cgroup/memory.max")  # of a container: bytes, or max
PRETRAINING = "pretrain"
END = 1  # the token that ends a generated answer, which has a loss like those of its words
Base = tuple[PreTrainedConfig | None, Path | None]  # a model to start from: its config, and the folder to fetch
Bases = Mapping[str | None, Base]  # by the entry under `checkpoints`; None: the model that is pretrained here


@dataclass(frozen=True)
class Planned:
    """A training run of params.yaml."""

    name: str
    fetched: Path | None  # the folder of a checkpoint that it starts from and that has to be fetched first
    needs: Needs
    written: int = 0  # bytes of its weights that are on disk already, perhaps from other settings
    trains: bool = True  # False with pretrain.epochs: 0, which passes the weights of a checkpoint on
    keeps_best: bool = False  # whether an epoch before the last may be kept, whose weights are then in its states too

    @property
    def peak(self) -> int:
        """Peak bytes of tensors; on a CPU, a body that stays frozen is loaded in float32 before it is rounded."""
        loaded = FLOAT * self.needs.parameters
        if not self.trains:
            return loaded
        return max(self.needs.peak, 0 if torch.cuda.is_available() else loaded)

    @property
    def saved(self) -> int:
        """Bytes of the weights that it saves, which are those that it trains."""
        return self.needs.gradients

    @property
    def is_done(self) -> bool:
        """Whether weights of the size that the run saves are there; their settings are not checked."""
        return self.written >= self.saved

    @property
    def state(self) -> int:
        """Bytes of a saved state: weights, moments and, with `keeps_best`, the weights of the epoch kept so far."""
        if not self.trains:
            return 0
        return self.needs.checkpoint + (self.saved if self.keeps_best else 0)


def require_room(params: Mapping[str, Any]) -> Iterator[str]:
    """What the runs need and what is available, line by line.

    Raises InputError if there is clearly too little: less memory in total than one device needs, or less than half
    of the disk space; or if a run has longer inputs than its model accepts.
    """
    bases = _bases(params)  # once: the digest of a folder reads all of it
    runs = list(_runs(params, bases))
    unknown = [name or "model" for name, (config, _) in bases.items() if config is None]
    if unknown:
        yield f"needs: the sizes of {', '.join(unknown)} are not known before they are fetched, and left out"
    if not runs:
        return
    disk, free = _disk(runs), shutil.disk_usage(".").free
    largest = max(runs, key=lambda run: run.peak)
    available, whole, place = _memory()
    done = sum(run.is_done for run in runs)
    besides = f", besides {done} of {len(runs)} runs whose weights are here" if done else ""
    yield f"needs: about {size(disk)} of disk for models and states{besides}; {size(free)} is free"
    yield (
        f"needs: about {size(largest.peak)} of memory for the tensors of {largest.name} on one device; "
        f"{size(available)} of {size(whole)} is free {place}"
    )
    is_shared = is_sharded() or bool(os.environ.get("RETRACE_LAUNCH"))  # then one device need not hold it all
    if largest.peak > whole and not is_shared:
        raise InputError(
            f"{largest.name}: it needs about {size(largest.peak)} of memory; {size(whole)} {place}; "
            "set RETRACE_MICRO_BATCH or RETRACE_ACTIVATION_CHECKPOINTING to use less"
        )
    if disk > 2 * free:
        raise InputError(f"{Path.cwd()}: the runs need about {size(disk)} of disk; {size(free)} is free")


def planned_memory(params: Mapping[str, Any], name: str) -> int | None:
    """Bytes that the tensors of the run `name` take on each of its devices; None if there is no such run."""
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    runs = _runs(params, _bases(params), processes, name)
    return next((run.needs.memory(processes) for run in runs), None)


def _bases(params: Mapping[str, Any]) -> Bases:
    """`base_of` each model that is trained, by its name; None is the name of the one pretrained here.

    The pipeline pretrains even if no method starts from that model; a study with a pipeline of its own may not.
    """
    names = [read_method(params, label).settings.checkpoint for label in Grid.read(params).every_method]
    if "stages.pretrain" in read_text(PROJECT / "dvc.yaml"):
        names.append(None)
    return {name: base_of(params, name) for name in dict.fromkeys(names)}


def base_of(params: Mapping[str, Any], name: str | None = None) -> Base:
    """The config of the model that is pretrained here, or of the entry `name` under `checkpoints`; and what to fetch.

    A checkpoint's config is in its folder; before it is fetched, a known architecture's is used; None if there is
    neither. What to fetch is the checkpoint's folder; None if there is no checkpoint, or it is there.
    """
    origin = read_initial_checkpoint(params, name).origin
    if origin is None:
        return described(params), None
    folder = CHECKPOINT if name is None else named_checkpoint(name)
    is_there = (folder / FACTS).is_file() and checkpoint_facts(folder)["from"] == str(origin)  # and not another
    if isinstance(origin, PinnedFolder):
        config = find_model(str(origin.path.resolve())).config  # absolute, as architectures are found by name
    elif is_there:
        config = read_config(folder)
    else:
        architecture = ARCHITECTURES.get(origin.repository)
        config = find_model(architecture).config if architecture else None
    return config, None if is_there else folder


def _runs(params: Mapping[str, Any], bases: Bases, processes: int = 1, only: str | None = None) -> Iterator[Planned]:
    """Pretraining, if there is any, and each fine-tuning run of a model of known size; or `only` the run of that name.

    Raises InputError if a run has longer inputs than its model accepts.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    bf16 = uses_bf16(build(Precision, params, "precision"), device)
    attention = attention_of(device)
    sharded = processes > 1 and is_sharded()
    grid = Grid.read(params)
    own, fetched = bases.get(None, (None, None))
    if own is not None and only in (None, PRETRAINING):
        recipe = build(PretrainSettings, params, "pretrain")
        check_length("params.yaml: pretrain.block_size", recipe.block_size, own)
        needs = pretraining_needs(own, recipe, math.ceil(recipe.batch_size / processes), bf16, attention, sharded)
        yield Planned(PRETRAINING, fetched, needs, _bytes(PRETRAINED), recipe.epochs > 0)
    for task in grid.all_tasks:
        for label in grid.methods_of(task):
            method = read_method(params, label, task)
            base = method.settings.checkpoint
            config, fetched = bases[base]
            cells = [cell for cell in grid.runs_of(task, label) if only in (None, cell.title)]
            if config is None or not cells:
                continue
            settings = adjusted(settings_of(params, task), method.settings)
            for key in INPUT_LENGTHS:
                check_length(f"params.yaml: {task}.{key}", getattr(settings, key, None), config)
            batch = math.ceil(settings.batch_size / processes)
            length = getattr(settings, "train_length", None) or settings.max_length
            head, load = head_and_load(settings, config, batch, length, bf16, attention, sharded)
            tune = partial(method.tune, dropout=settings.dropout)
            needs = update_needs(head, config, load, settings.optimizer, tune)
            for cell in cells:
                written, keeps_best = _bytes(WEIGHTS / cell.path), settings.checkpoint == "best"
                # What the pretrained model starts from is fetched by its own run.
                yield Planned(cell.title, fetched if base else None, needs, written, keeps_best=keeps_best)


def _bytes(folder: Path) -> int:
    """Bytes of the weights in a folder."""
    return sum(path.stat().st_size for path in folder.glob("*.safetensors"))


def pretraining_needs(
    config: PreTrainedConfig, recipe: PretrainSettings, blocks: int, bf16: bool, attention: str, sharded: bool = False
) -> Needs:
    """The needs of pretraining on a device that gets `blocks` blocks a step."""
    head, load = head_and_load(recipe, config, blocks, recipe.block_size, bf16, attention, sharded)
    return update_needs(head, config, load, recipe.optimizer)


def head_and_load(
    recipe: PretrainSettings | FineTuneSettings, config: PreTrainedConfig, batch: int, length: int, bf16: bool,
    attention: str, sharded: bool = False,
) -> tuple[Head, Load]:  # fmt: skip
    """The head that a recipe trains, and a load of so many examples of this length.

    A language model computes a loss for masked tokens, or for all if it is causal; in fine-tuning for the answer's.
    """
    head: Head = "classifier"
    scored, match = 0, False
    if isinstance(recipe, PretrainSettings):
        head = "pairs" if recipe.next_sentence else "language_model"
        scored = masked_of(length, recipe.mask_rate) if objective_of(config) == "masked" else length
        within = recipe.intra_document_attention
        return head, Load(batch, length, batch * scored, bf16, attention, sharded=sharded, within_documents=within)
    if isinstance(recipe, AnswerSettings):
        head, match = ANSWERING[recipe.answers].head, recipe.question_match
        scored = min(recipe.max_answer_length + END, length) if head == "language_model" else 0
    return head, Load(
        batch, length, batch * scored, bf16, attention, copies=recipe.copies, question_match=match, sharded=sharded
    )


def _disk(runs: Iterable[Planned]) -> int:
    """Bytes that are still to be written."""
    left = [run for run in runs if not run.is_done]
    fetched = {run.fetched: FLOAT * run.needs.parameters for run in left if run.fetched is not None}
    states = STATES * max((run.state for run in left), default=0)
    return FETCHED * sum(fetched.values()) + TRAINED * sum(run.saved for run in left) + states


def _memory() -> tuple[int, int, str]:
    """Bytes free, bytes in all, and where."""
    if torch.cuda.is_available():
        return *torch.cuda.mem_get_info(), "on the GPU"
    memory = psutil.virtual_memory()
    limit = LIMIT.read_text().strip() if LIMIT.is_file() else "max"
    most = memory.total if limit == "max" else int(limit)
    return min(memory.available, most), min(memory.total, most), "in main memory"
