"""A few updates of three studies' exact architectures with random weights: their time, and memory against the plan.

Each cell runs in its own process, on the GPU if there is one. On a CPU, memory is how much more the process holds than
before, including freed memory that it keeps, and `--share 16` takes a sixteenth of each batch. `hours` is the time for
the study's examples and epochs at that speed if every example were as long as the longest: an upper bound, especially
for a frozen body, which reads every batch here but each example only once in a study. LoRA and adapters have their
default settings; the study's LoRA has rank 32 on two matrices of a layer instead of 16 on four. The variables of
docs/hardware.md, such as RETRACE_COMPILE, apply as in training.

full_size.json is from a version whose batches were all the same and which timed the updates after the first.

    python benchmarks/full_size.py --share 16      # two cores; writes full_size.json
    python benchmarks/full_size.py --updates 50    # a GPU; writes full_size_gpu.json
"""

import json
import sys
import time
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import torch
from harness import plain_parser, write_result
from memory import Sentences

from retrace.compute.device import Device, open_device, peak_memory
from retrace.compute.sharding import data_parallel
from retrace.estimates.architectures import find_model
from retrace.estimates.memory import Load, update_needs
from retrace.finetuning.method import read_method, round_frozen
from retrace.models.heads import Head, make_model
from retrace.models.language_model import LanguageModel
from retrace.objectives.language_modelling import Masking
from retrace.tokens.tokenizer import Vocabulary
from retrace.training.loop import Objective, Run, Training
from retrace.training.settings import OptimizerSettings
from retrace.training.throughput import peak_flops
from tests.tiny import random_blocks

MASKED = 0.15  # share of a block
WARM_UP = 10  # updates that are not timed: compiling, first kernels, an allocator that grows
SST2, AG_NEWS = 67_349, 120_000  # training examples as published
OPTIMISER = OptimizerSettings(kind="adamw")


@dataclass(frozen=True)
class Cell:
    """What a study trains: a language model if there are no examples, else a classifier."""

    model: str  # one of retrace/estimates/architectures.json
    method: str
    batch: int
    length: int  # tokens of the longest example
    examples: int = 0  # of an epoch
    epochs: int = 0

    @property
    def head(self) -> Head:
        """The head on the model's body."""
        return "classifier" if self.examples else "language_model"


CELLS = {
    "bert-wikitext2, pretraining": Cell("bert-base", "full", 16, 512),
    "bert-wikitext2, pretraining, 256 blocks": Cell("bert-base", "full", 256, 512),
    "bert-wikitext2, SST-2": Cell("bert-base", "full", 16, 128, SST2, 5),
    "llama-frozen, SST-2": Cell("llama-3.2-1b", "frozen", 16, 128, int(0.8 * SST2), 3),
    "plm-peft, AG News, RoBERTa": Cell("roberta-base", "full", 32, 256, AG_NEWS, 10),
    "plm-peft, AG News, LoRA": Cell("roberta-base", "lora", 32, 256, AG_NEWS, 10),
    "plm-peft, AG News, adapter": Cell("roberta-base", "adapter", 32, 256, AG_NEWS, 10),
}


def main() -> None:
    parser = plain_parser(__doc__)
    parser.add_argument("--share", type=int, default=1, help="divide each batch by so much")
    parser.add_argument("--updates", type=int, default=3, help="that are timed")
    parser.add_argument("--only", default="", help="cells whose names have this in them; nothing is written")
    arguments = parser.parse_args()
    found = {}
    with get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for name, cell in CELLS.items():
            if arguments.only in name:
                found[name] = pool.apply(measure, (cell, arguments.share, arguments.updates))
                print(f"{name}: {json.dumps(found[name])}", file=sys.stderr, flush=True)
    if not arguments.only:
        name = "full_size_gpu" if torch.cuda.is_available() else "full_size"
        write_result(name, {"share_of_the_batch": arguments.share, "updates": arguments.updates, "cells": found})


def measure(cell: Cell, share: int, updates: int) -> dict[str, Any]:
    """Train, and report the time and memory it took, and what was planned."""
    device = open_device(0, "auto")
    batch = max(1, cell.batch // share)
    asked = batch * int(MASKED * cell.length)
    load = Load(batch, cell.length, asked, device.bf16, device.attention)
    before = peak_memory()
    seconds, tokens = timed(cell, load, device, updates)
    gpu = torch.cuda.get_device_name() if device.torch_device.type == "cuda" else None
    held = torch.cuda.max_memory_allocated() if gpu else peak_memory() - before
    config = find_model(cell.model).config
    needs = update_needs(cell.head, config, load, OPTIMISER, read_method({}, cell.method).tune)
    each, flops, peak = seconds / updates, needs.flops * tokens / seconds, peak_flops(gpu, device.bf16)
    return {
        "device": gpu or "cpu",
        "compiled": device.compiler is not None,
        "precision": "bf16" if device.bf16 else "fp32",
        "parameters": needs.parameters,
        "trained_parameters": needs.trained,
        "batch": batch,
        "length": cell.length,
        "seconds_an_update": round(each, 4),
        "tokens_a_second": round(tokens / seconds),
        "teraflops_a_second": round(flops / 1e12, 3),
        "percent_of_peak": round(100 * flops / peak, 1) if peak else None,
        "peak_mebibytes": round(held / 2**20),
        "planned_mebibytes": round(needs.peak / 2**20),
        "hours": round(each * cell.epochs * cell.examples / batch / 3600, 1) or None,
    }


def timed(cell: Cell, load: Load, device: Device, updates: int) -> tuple[float, int]:
    """The seconds and tokens of this many updates; the host reads each update's loss, so none is still running."""
    config = find_model(cell.model).config
    if config.pad_token_id is None:
        config.pad_token_id = 0  # transformers' classifiers need one
    body = make_model(cell.head, config, 0, device.attention)
    read_method({}, cell.method).tune(body, cell.head)
    if device.bf16:
        round_frozen(body)
    model = (body if cell.examples else LanguageModel(body)).to(device.torch_device)
    most = WARM_UP + updates
    objective: Objective[Any, Any]
    if cell.examples:
        objective = Sentences(load, most)
    else:
        vocabulary = Vocabulary(config.vocab_size, *range(5))
        objective = random_blocks(vocabulary, load.length, load.batch, Masking(MASKED, "80-10-10"), most)
    run = Run("run", model, objective, device, OPTIMISER, 1e-5, 1, most)
    training = Training(run, data_parallel(model, device))
    training.at.epoch = 0
    made = training.rest_of_epoch()
    for _ in range(WARM_UP):
        next(made)
    began = time.perf_counter()
    tokens = sum(share.tokens for share, *_ in made)
    return time.perf_counter() - began, tokens


if __name__ == "__main__":
    main()
