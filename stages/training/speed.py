"""How long training took and what it held: kept beside the metrics, never among them."""

from pathlib import Path

from stages.harness.device import Device, peak_memory
from stages.harness.records import write_json
from stages.training.loop import Speed


def write_speed(path: Path, speed: Speed, device: Device, parameters: int) -> None:
    """Write seconds, tokens a second, waiting for data (% of seconds), peak memory (MiB) and layout of a run."""
    write_json(
        path,
        {
            "seconds": round(speed.seconds, 1),
            "tokens_per_second": round(speed.tokens / max(speed.seconds, 1e-9)),
            "waiting_percent": round(100 * speed.waited / max(speed.seconds, 1e-9), 1),
            "peak_memory_mib": round(peak_memory() / 2**20),
            "parameters": parameters,
            "processes": device.processes,
            "device": device.place.type,
            "precision": "bf16" if device.bf16 else "fp32",
        },
    )
