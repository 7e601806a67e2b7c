"""A few updates of each study's exact architecture, on random weights: their time, and memory beside what was planned.

Each cell is a process of its own, on the GPU where there is one. On a processor, memory is what the process holds more
than before, freed memory that it keeps included, and `--share 16` takes a sixteenth of each batch. `hours` is what the
study's examples and epochs take at that speed if every example is as long as the longest: an upper bound.

Last result: the planned memory and the measured are beside each other in full_size.json, on two cores.

    python benchmarks/full_size.py --share 16    # writes full_size.json
"""

import json
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import torch
from beside import plain_parser, write_result
from torch import Tensor, nn

from retrace.compute.device import Device, open_device, peak_memory
from retrace.estimates.architectures import find_model
from retrace.estimates.memory import Load, update_needs
from retrace.finetuning.method import read_method, round_frozen
from retrace.models.heads import Head, make_model
from retrace.models.language_model import LanguageModel
from retrace.objectives.language_modelling import BlockModelling, Inputs, LabelledBatch, token_loss
from retrace.training.loop import Run, Speed, train
from retrace.training.settings import OptimizerSettings

UPDATES = 3  # that are timed, after one that is not
MASKED = 0.15  # share of a block
SST2, AG_NEWS = 67_349, 120_000  # training examples as published
OPTIMISER = OptimizerSettings(kind="adamw")


@dataclass(frozen=True)
class Cell:
    """What a study trains: a language model where there are no examples, else a classifier."""

    model: str  # a preset
    method: str
    batch: int
    length: int  # tokens of the longest example
    examples: int = 0  # of an epoch
    epochs: int = 0

    @property
    def head(self) -> Head:
        """What is on top."""
        return "classifier" if self.examples else "language_model"


CELLS = {
    "bert-wikitext2, pretraining": Cell("bert-base", "full", 16, 512),
    "bert-wikitext2, SST-2": Cell("bert-base", "full", 16, 128, SST2, 5),
    "llama-frozen, SST-2": Cell("llama-3.2-1b", "frozen", 16, 128, int(0.8 * SST2), 3),
    "plm-peft, AG News, RoBERTa": Cell("roberta-base", "full", 32, 256, AG_NEWS, 10),
    "plm-peft, AG News, LoRA": Cell("roberta-base", "lora", 32, 256, AG_NEWS, 10),
    "plm-peft, AG News, adapter": Cell("roberta-base", "adapter", 32, 256, AG_NEWS, 10),
}


class Same(BlockModelling):
    """The same batch over and over; of a classifier the labels are not looked at."""

    def __init__(self, load: Load) -> None:
        self.load, self.steps = load, UPDATES

    def batches(self, epoch: int) -> Iterator[LabelledBatch]:
        """Ids and labels (B, T)."""
        ids = torch.full((self.load.batch, self.load.length), 5)
        labels = torch.full_like(ids, -100)
        labels[:, : self.load.scored // self.load.batch] = 5
        for _ in range(self.steps):
            yield LabelledBatch(ids, labels)

    def sizes(self, batch: LabelledBatch) -> tuple[int, int]:
        """The targets of a language model, else one an example; all tokens."""
        return self.load.scored or self.load.batch, batch.ids.numel()

    def loss(self, model: nn.Module, part: Inputs) -> Tensor:
        """Cross-entropy, summed."""
        if isinstance(model, LanguageModel):
            return token_loss(model, part)
        scores = model(input_ids=part.ids, attention_mask=torch.ones_like(part.ids)).logits
        return nn.functional.cross_entropy(scores, torch.zeros_like(part.ids[:, 0]), reduction="sum")


def main() -> None:
    parser = plain_parser(__doc__)
    parser.add_argument("--share", type=int, default=1, help="divide each batch by so much")
    arguments = parser.parse_args()
    found = {}
    with get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for name, cell in CELLS.items():
            found[name] = pool.apply(measure, (cell, arguments.share))
            print(f"{name}: {json.dumps(found[name])}", file=sys.stderr, flush=True)
    write_result("full_size", {"share_of_the_batch": arguments.share, "cells": found})


def measure(cell: Cell, share: int) -> dict[str, Any]:
    """Train, and say what it took beside what was planned."""
    device = open_device(0, "auto")
    batch = max(1, cell.batch // share)
    asked = batch * int(MASKED * cell.length)
    load = Load(batch, cell.length, asked, device.bf16, device.attention)
    before = peak_memory()
    with redirect_stdout(sys.stderr):  # progress is no part of the result
        speed = trained(cell, load, device)
    is_gpu = device.torch_device.type == "cuda"
    held = torch.cuda.max_memory_allocated() if is_gpu else peak_memory() - before
    config = find_model(cell.model).config
    needs = update_needs(cell.head, config, load, OPTIMISER, read_method({}, cell.method).tune)
    seconds = speed.seconds / speed.updates
    return {
        "device": device.torch_device.type,
        "precision": "bf16" if device.bf16 else "fp32",
        "parameters": needs.parameters,
        "trained_parameters": needs.trained,
        "batch": batch,
        "length": cell.length,
        "seconds_an_update": round(seconds, 3),
        "tokens_a_second": round(speed.tokens / speed.seconds),
        "teraflops_a_second": round(speed.flops / speed.seconds / 1e12, 3),
        "peak_mebibytes": round(held / 2**20),
        "planned_mebibytes": round(needs.peak / 2**20),
        "hours": round(seconds * cell.epochs * cell.examples / batch / 3600, 1) or None,
    }


def trained(cell: Cell, load: Load, device: Device) -> Speed:
    """The speed of the updates after the first."""
    config = find_model(cell.model).config
    if config.pad_token_id is None:
        config.pad_token_id = 0  # without which there is no classifier
    body = make_model(cell.head, config, 0, device.attention)
    read_method({}, cell.method).tune(body, cell.head)
    if device.bf16:
        round_frozen(body)
    model = (body if cell.examples else LanguageModel(body)).to(device.torch_device)
    speed = None
    for updates in (1, UPDATES):
        run = Run("run", model, Same(load), device, OPTIMISER, 1e-5, 1, updates)
        speed = train(run, lambda epoch, meter: None)
    assert speed is not None
    return speed


if __name__ == "__main__":
    main()
