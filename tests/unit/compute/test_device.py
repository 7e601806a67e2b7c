import os
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from retrace.compute import device


def test_kernels_and_reductions_are_deterministic_before_processes_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    """NCCL chooses how it adds when the process group is made, which Accelerator does."""
    found: list[tuple[bool, str | None]] = []

    def accelerator() -> Any:
        found.append((torch.are_deterministic_algorithms_enabled(), os.environ.get("NCCL_ALGO")))
        return made()

    made = device.Accelerator
    monkeypatch.setattr(device, "Accelerator", accelerator)
    monkeypatch.delenv("NCCL_ALGO", raising=False)
    torch.use_deterministic_algorithms(False)
    device.open_device(0, "fp32")
    assert found == [(True, "^NVLS")]
    assert torch.are_deterministic_algorithms_enabled()


def test_each_process_drops_other_activations_and_the_first_those_of_one_alone() -> None:
    def mask(rank: int | None) -> Any:
        torch.manual_seed(1)
        if rank is not None:
            accelerator: Any = SimpleNamespace(process_index=rank, num_processes=3)
            device.Device(accelerator, bf16=False, sharded=False).seed_dropout()
        return tuple(torch.nn.functional.dropout(torch.ones(64)).tolist())

    assert mask(0) == mask(None)
    assert len({mask(rank) for rank in range(3)}) == 3
    assert mask(2) == mask(2)
