"""Time, memory and FLOPs of a training run, and the peak FLOP/s of devices.

Model FLOPs utilisation (Chowdhery et al. 2022, PaLM, appendix B) is the FLOPs of the model's matrix products, forward
and backward, divided by those that the device could do in the same time.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from retrace.compute.device import Device, peak_memory
from retrace.core.files import write_json
from retrace.core.records import RunRecord, find_origin

# Dense FLOP/s in bf16 and in fp32 (TF32 is never used), from NVIDIA's data sheets, by a part of the device's name; the
# first match counts.
PEAKS = {
    "H100 PCIe": (756e12, 51e12), "NVL": (835e12, 60e12), "H200": (989e12, 67e12), "H100": (989e12, 67e12),
    "A100": (312e12, 19.5e12),
}  # fmt: skip


class ProductOperations(TorchDispatchMode):
    """A context that counts the FLOPs of matrix products by torch's formulas, without recomputation.

    A multiply-add counts as two; element-wise operations are not counted. Torch's own FlopCounterMode counts by module,
    for which it keeps tensors alive that would otherwise be freed.
    """

    total = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run and count an operation."""
        result = func(*args, **(kwargs or {}))
        formula = flop_registry.get(func.overloadpacket)
        # The backward pass runs without gradients, except where activation checkpointing recomputes.
        is_repeated = torch._C._current_graph_task_id() != -1 and torch.is_grad_enabled()
        if formula and not is_repeated:
            total = formula(*args, **(kwargs or {}), out_val=result)
            # One of the five products in fused attention's backward pass recomputes the scores.
            self.total += total * 4 // 5 if "attention_backward" in func.overloadpacket.__name__ else total
        return result


def count_flops(model: nn.Module, backward: Callable[[], object]) -> int:
    """The FLOPs of the matrix products in one forward and backward pass; leaves random generators unchanged."""
    device = next(model.parameters()).device
    devices = [device] if device.type == "cuda" else []  # reading a GPU's state starts CUDA there
    with torch.random.fork_rng(devices), torch.compiler.set_stance("force_eager"), ProductOperations() as operations:
        backward()
    model.zero_grad(set_to_none=True)
    return operations.total


def peak_flops(gpu: str | None, bf16: bool) -> float | None:
    """The peak FLOP/s of a GPU by its name; None if unknown, or for a MIG slice of one."""
    found = (peaks for part, peaks in PEAKS.items() if gpu and "MIG" not in gpu and re.search(rf"{part}\b", gpu))
    return next((in_bf16 if bf16 else in_fp32 for in_bf16, in_fp32 in found), None)


@dataclass(frozen=True)
class Speed:
    """Time and work of a run, and its training curve.

    Seconds exclude evaluation; tokens are of all processes, without padding.
    """

    updates: int
    seconds: float
    waited: float  # the part of these seconds spent waiting for data
    evaluating: float  # further seconds, spent on evaluation
    tokens: int
    flops: float  # of matrix products, over all processes, extrapolated from one batch
    points: list[list[float]]  # updates done, and the mean training loss since the last point


def write_run_record(path: Path, speed: Speed, device: Device, model: nn.Module) -> None:
    """Write the time and memory of a run."""
    gpu = torch.cuda.get_device_name(device.torch_device) if device.torch_device.type == "cuda" else None
    seconds, peak = max(speed.seconds, 1e-9), peak_flops(gpu, device.bf16)
    record = RunRecord(
        updates=speed.updates,
        seconds=round(speed.seconds, 1),
        evaluation_seconds=round(speed.evaluating, 1),
        tokens_per_second=round(speed.tokens / seconds),
        waiting_percent=round(100 * speed.waited / seconds, 1),
        teraflops_per_second=round(speed.flops / seconds / 1e12, 3),
        utilisation_percent=round(100 * speed.flops / seconds / peak / device.processes, 1) if peak else None,
        peak_memory_mib=round(peak_memory() / 2**20),
        gpu_memory_mib=round(torch.cuda.max_memory_allocated(device.torch_device) / 2**20) if gpu else None,
        parameters=sum(weight.numel() for weight in model.parameters()),
        trained_parameters=sum(weight.numel() for weight in model.parameters() if weight.requires_grad),
        processes=device.processes,
        device=device.torch_device.type,
        precision="bf16" if device.bf16 else "fp32",
        tokens=speed.tokens,
        origin=find_origin(gpu),
    )
    write_json(path, record.to_json())
