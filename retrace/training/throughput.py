"""Measures of a training run for its record."""

from pathlib import Path

import torch
from torch import nn

from retrace.compute.device import Device, peak_memory
from retrace.compute.flops import peak_flops
from retrace.core.files import write_json
from retrace.core.records import RunRecord
from retrace.training.loop import Speed


def write_run_record(path: Path, speed: Speed, device: Device, model: nn.Module) -> None:
    """Write what a run took."""
    seconds, peak = max(speed.seconds, 1e-9), peak_flops(device.torch_device)
    on_gpu = device.torch_device.type == "cuda"
    record = RunRecord(
        updates=speed.updates,
        seconds=round(speed.seconds, 1),
        tokens_per_second=round(speed.tokens / seconds),
        waiting_percent=round(100 * speed.waited / seconds, 1),
        teraflops_per_second=round(speed.flops / seconds / 1e12, 3),
        utilisation_percent=round(100 * speed.flops / seconds / peak / device.processes, 1) if peak else None,
        peak_memory_mib=round(peak_memory() / 2**20),
        gpu_memory_mib=round(torch.cuda.max_memory_allocated(device.torch_device) / 2**20) if on_gpu else None,
        parameters=sum(weight.numel() for weight in model.parameters()),
        trained_parameters=sum(weight.numel() for weight in model.parameters() if weight.requires_grad),
        processes=device.processes,
        device=device.torch_device.type,
        precision="bf16" if device.bf16 else "fp32",
    )
    write_json(path, record.to_json())
