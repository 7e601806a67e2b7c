"""The memory that `retrace memory` estimates for tuning, compared with what a process actually held.

Each cell runs in its own process, which makes a model, tunes it for a few updates with the project's own loop and
reports how much more memory it held at its peak than before. It is measured twice: with freed memory returned to the
system, which shows what tensors take, and with freed memory kept for speed, as Retrace does, fragmentation included. A
tiny model is tuned first, so that the libraries are already in memory. The models are large enough that tensors
outweigh everything else.

Finally, two processes share a model (FSDP), and what each held is compared with what `retrace plan --sharded` says.

    python benchmarks/memory.py                  # about five minutes; writes memory.json
"""

import argparse
import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from multiprocessing import get_context

import torch
from harness import TORCHRUN, plain_parser, write_result
from torch import Tensor, nn

from retrace.compute.device import Device, open_device
from retrace.compute.sharding import to_device
from retrace.estimates.memory import Load, Needs, update_needs
from retrace.finetuning.method import read_method
from retrace.models.heads import make_config, make_model
from retrace.models.settings import ModelSettings
from retrace.tokens.tokenizer import Vocabulary
from retrace.training.loop import Run, train
from retrace.training.settings import OptimizerSettings
from tests.campaigns.cases import memory

FAMILIES, METHODS, UPDATES = ("bert", "llama"), ("full", "lora", "adapter"), 2
MODEL = ModelSettings(hidden_size=256, layers=6, heads=4, intermediate_size=1024, max_positions=256, dropout=0.1)
VOCABULARY = Vocabulary(30522, *range(5))
LOAD = Load(batch=16, length=192, scored=0, bf16=False, attention="lean")
OPTIMISER = OptimizerSettings(kind="adamw")
MMAP_THRESHOLD, TRIM_THRESHOLD = -3, -1  # glibc's names, of malloc.h


@dataclass(frozen=True)
class Sentences:
    """Random tokens, each example as long as the longest, and of the first class."""

    load: Load
    steps: int = UPDATES

    def batches(self, epoch: int) -> Iterator[Tensor]:
        """Token ids (B, T)."""
        drawn = torch.Generator().manual_seed(epoch)
        for _ in range(self.steps):
            yield torch.randint(5, 1000, (self.load.batch, self.load.length), generator=drawn)

    def sizes(self, batch: Tensor) -> tuple[int, int]:
        """One target per example, and all tokens."""
        return len(batch), batch.numel()

    def part(self, batch: Tensor, rows: slice, device: Device) -> Tensor:
        """Some of the examples."""
        return device.send(batch[rows])

    def loss(self, model: nn.Module, part: Tensor) -> Tensor:
        """Cross-entropy, summed."""
        scores = model(input_ids=part, attention_mask=torch.ones_like(part)).logits
        return nn.functional.cross_entropy(scores, torch.zeros_like(part[:, 0]), reduction="sum")


def main() -> None:
    parser = plain_parser(__doc__)
    parser.add_argument("--shared", choices=FAMILIES, help=argparse.SUPPRESS)  # given by the benchmark itself
    shared = parser.parse_args().shared
    if shared:
        print(held(shared, "full", True))
        return
    cells = [(family, method) for family in FAMILIES for method in METHODS]
    with get_context("fork").Pool(1, maxtasksperchild=1) as pool:  # before this process starts threads
        measured = {cell: [pool.apply(held, (*cell, returned)) for returned in (True, False)] for cell in cells}
    found = {}
    for cell, (tensors, process) in measured.items():
        kept = {"held_with_freed_memory_kept": round(process)}
        found[" ".join(cell)] = planned_and_held(needed(*cell).peak, tensors) | kept
    halves = {f"{family} full, shared by two": compare_shared(family) for family in FAMILIES}
    found = {"model": vars(MODEL), "batch": LOAD.batch, "length": LOAD.length, "mebibytes": {**found, **halves}}
    write_result("memory", found)


def compare_shared(family: str) -> dict[str, float]:
    """MiB planned and held for each of two processes that share a model with all of its weights tuned."""
    command = [sys.executable, *TORCHRUN, "2", __file__, "--shared", family]
    environment = {**os.environ, "ACCELERATE_USE_CPU": "1", "ACCELERATE_USE_FSDP": "true", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return planned_and_held(needed(family, "full", sharded=True).memory(2), max(map(float, done.stdout.split())))


def needed(family: str, method: str, sharded: bool = False) -> Needs:
    """The plan."""
    config, load = make_config(family, MODEL, VOCABULARY), replace(LOAD, sharded=sharded)
    return update_needs("classifier", config, load, OPTIMISER, read_method({}, method).tune)


def planned_and_held(planned_bytes: float, held: float) -> dict[str, float]:
    """MiB planned and held, and how far off the plan is."""
    planned = planned_bytes / 2**20
    return {
        "planned": round(planned),
        "held": round(held),
        "planned_over_held_percent": round(100 * (planned / held - 1), 1),
    }


def held(family: str, method: str, returned: bool) -> float:
    """How many MiB more this process holds at its peak than before its model was made."""
    device = open_device(0, "fp32")
    if returned:
        libc = ctypes.CDLL(None)
        libc.mallopt(MMAP_THRESHOLD, 2**16)
        libc.mallopt(TRIM_THRESHOLD, 2**16)
    tiny = ModelSettings(hidden_size=32, layers=1, heads=2, intermediate_size=64, max_positions=64)
    tune(family, method, tiny, replace(LOAD, batch=1, length=16), device)
    before = memory("VmRSS")
    tune(family, method, MODEL, LOAD, device)
    return (memory("VmHWM") - before) / 2**20


def tune(family: str, method: str, size: ModelSettings, load: Load, device: Device) -> None:
    """A few updates by the project's loop."""
    model = make_model("classifier", make_config(family, size, VOCABULARY), 0, load.attention)
    read_method({}, method).tune(model, "classifier")
    model = to_device(model, device)
    load = replace(load, batch=load.batch * device.processes)  # of all of them
    run = Run("run", model, Sentences(load), device, OPTIMISER, 1e-4, 1)
    with redirect_stdout(sys.stderr):  # its progress is no part of the result
        train(run, lambda epoch, meter: None)


if __name__ == "__main__":
    main()
