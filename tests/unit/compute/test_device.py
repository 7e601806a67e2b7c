import os
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
