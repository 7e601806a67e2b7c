"""The process of a stage, or of its launcher, made ready before the imports that take seconds."""

import ctypes
import os
import signal
import sys
from types import FrameType

from retrace.core.errors import INTERRUPTED

PARENT_ENDS = 1  # PR_SET_PDEATHSIG of Linux's prctl.h


def prepare() -> None:
    """Have threads wait without spinning for long, and have this process end when it should."""
    # OpenMP's threads spin 300,000 times by default, which keeps a core from a process that has work for it. The
    # variable is read when PyTorch is imported.
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    # A stage ends when the DVC that started it does, even by SIGKILL: nobody would record what it does, and it would
    # write while the next `dvc repro` does.
    if os.environ.get("DVC_STAGE") and sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(PARENT_ENDS, signal.SIGTERM)
    if any(word.startswith("stages.") for word in sys.orig_argv):  # not in a test that imports a stage
        for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT):
            signal.signal(number, _end)


def _end(number: int, frame: FrameType | None) -> None:
    """End as a guarded stage does later on; an import might catch an exception."""
    os.write(2, b"asked to stop; run it again\n")
    os._exit(INTERRUPTED)
