"""What is written of a run's time, work and memory."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from retrace.compute.device import Device
from retrace.compute.tensors import seeded
from retrace.core.records import RunRecord
from retrace.models.language_model import make_language_model
from retrace.objectives.language_modelling import Masking, mask_blocks, token_loss
from retrace.training import throughput
from retrace.training.throughput import Speed, count_flops, peak_flops, write_run_record
from tests.sharded import STREAM, TOKENIZER, VOCABULARY
from tests.tiny import tiny_config, tiny_device

SPEED = Speed(updates=7, seconds=12.34, waited=0.61, evaluating=3.21, tokens=98_765, flops=3.21e13, points=[])


def _written(folder: Path, speed: Speed = SPEED, device: Device | None = None) -> RunRecord:
    model = torch.nn.Sequential(torch.nn.Linear(10, 4), torch.nn.Linear(4, 2))
    model[0].weight.requires_grad_(False)
    write_run_record(folder / "run.json", speed, device or tiny_device(), model)
    return RunRecord.read(folder / "run.json")


def test_speeds_of_a_run_by_hand(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(throughput, "peak_memory", lambda: 5 * 2**19)
    found = _written(tmp_path)
    assert (found.updates, found.seconds, found.tokens) == (7, 12.3, 98_765)
    assert found.tokens_per_second == 8004  # 98,765 / 12.34 = 8003.6
    assert found.evaluation_seconds == 3.2
    assert found.waiting_percent == 4.9  # 0.61 of 12.34 seconds
    assert found.teraflops_per_second == 2.601
    assert (found.peak_memory_mib, found.gpu_memory_mib, found.utilisation_percent) == (2, None, None)
    assert (found.parameters, found.trained_parameters) == (44 + 10, 4 + 10)
    assert (found.processes, found.device, found.precision) == (1, "cpu", "fp32")
    nothing = _written(tmp_path, replace(SPEED, updates=0, seconds=0.0, waited=0.0, tokens=0, flops=0.0))
    assert (nothing.tokens_per_second, nothing.waiting_percent, nothing.teraflops_per_second) == (0, 0, 0)


def test_utilisation_is_relative_to_the_peak_of_all_devices(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(throughput, "peak_flops", lambda gpu, bf16: 10e12)
    assert _written(tmp_path).utilisation_percent == 26.0  # 2.601 of 10
    of_four = _written(tmp_path, device=replace(tiny_device(), processes=4, bf16=True))
    assert (of_four.utilisation_percent, of_four.processes, of_four.precision) == (6.5, 4, "bf16")  # of 4 times 10


def test_the_peak_is_that_of_the_data_sheet() -> None:
    names = ("NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe", "NVIDIA H100 NVL", "NVIDIA H200", "NVIDIA A100-SXM4-40GB")
    assert [peak_flops(name, True) for name in names] == [989e12, 756e12, 835e12, 989e12, 312e12]
    assert [peak_flops(name, False) for name in names] == [67e12, 51e12, 60e12, 67e12, 19.5e12]
    assert peak_flops("Tesla T4", True) is peak_flops(None, True) is None
    assert peak_flops("NVIDIA RTX A1000 Laptop GPU", True) is None  # no A100
    assert peak_flops("NVIDIA H100 80GB HBM3 MIG 1g.10gb", True) is None  # a seventh of the GPU


def test_the_operations_of_a_step_are_those_of_its_products() -> None:
    """A masked step of a two-layer ModernBERT: hidden 32, feed-forward 64 with a gate, 6 of 16 tokens masked."""
    model = make_language_model(tiny_config("modernbert", TOKENIZER), 0, "eager").train()
    blocks = torch.from_numpy(STREAM[:16].astype(np.int64))[None]
    batch = mask_blocks(blocks, Masking(0.4), VOCABULARY, seeded(0, "m"))
    asked, part = batch.count, batch.to(tiny_device())
    before = torch.get_rng_state()
    counted = count_flops(model, lambda: token_loss(model, part).backward())
    layer = 2 * 16 * (32 * 96 + 32 * 32 + 32 * 128 + 64 * 32) + 2 * 2 * 16 * 16 * 32
    head = 2 * asked * (32 * 32 + 32 * VOCABULARY.size)
    assert counted == 3 * (2 * layer + head)
    assert all(weight.grad is None for weight in model.parameters())
    assert torch.equal(before, torch.get_rng_state())


def test_operations_of_a_model_on_a_cpu_are_counted_without_starting_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would take memory of a GPU that the process has no lease on."""
    model, given = torch.nn.Linear(3, 2), torch.ones(4, 3)

    def counted() -> int:
        return count_flops(model, lambda: model(given).sum().backward())

    before = counted()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: pytest.fail("CUDA was started"))
    assert counted() == before == 2 * (2 * 4 * 3 * 2)  # the output and the gradient of the weights
