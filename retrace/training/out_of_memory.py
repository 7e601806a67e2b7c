"""How a run ends that a device has too little memory for."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

import torch

from retrace.core.errors import InputError
from retrace.core.files import size
from retrace.core.settings import read_params


@contextmanager
def named_out_of_memory(run: str) -> Iterator[None]:
    """Raise InputError where a device runs out of memory, with the need planned for `run` and what takes less."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        # By name: estimates change no result, so that no stage depends on them.
        needed = import_module("retrace.estimates.needs").planned_memory(read_params(), run)
        planned = f"planned are {size(needed)} and what the program takes; " if needed else ""
        most = os.environ.get("RETRACE_MICRO_BATCH")
        raise InputError(
            f"{run}: {'. '.join(str(error).split('. ')[:3])}; {planned}less is taken with "
            f"RETRACE_MICRO_BATCH=N, N examples at once{f' (now {most})' if most else ''}, and with "
            "RETRACE_ACTIVATION_CHECKPOINTING=true"
        ) from None
