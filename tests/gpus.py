"""Simulated GPUs: an `nvidia-smi` that lists them, and a temporary folder for their leases."""

import os
from pathlib import Path


def pretend_gpus(folder: Path, count: int) -> dict[str, str]:
    """The environment of a process that sees this many GPUs, from GPU-0 on."""
    folder.mkdir(exist_ok=True)
    program = folder / "nvidia-smi"
    program.write_text("#!/bin/sh\n" + "".join(f"echo GPU-{number}\n" for number in range(count)))
    program.chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}", "TMPDIR": str(folder), "RETRACE_SHARE_GPUS": "false"}
