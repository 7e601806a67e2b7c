"""Retrace's library: a folder is a room, and a room is what a stage of dvc.yaml depends on."""

import ctypes
import os
import signal
import sys
from types import FrameType

# OpenMP's threads wait for each other by spinning, 300,000 times by default, which keeps a core from another process
# that has work for it. It is read when PyTorch is imported.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")

# A stage, or a launcher, is asked to stop where what started it ends, even by SIGKILL: nobody else would record what it
# does, and it would write while the next `dvc repro` does.
if os.environ.get("DVC_STAGE") and sys.platform.startswith("linux"):
    PARENT_ENDS = 1  # PR_SET_PDEATHSIG of prctl.h
    ctypes.CDLL(None).prctl(PARENT_ENDS, signal.SIGTERM)


def _end(number: int, frame: FrameType | None) -> None:
    os.write(2, b"asked to stop; run it again\n")
    os._exit(os.EX_TEMPFAIL)  # retrace.core.errors.INTERRUPTED; an import might catch an exception


# A stage and its launcher, whose imports take seconds, answer a signal that asks to stop as they do later on.
if any(word.startswith("stages.") for word in sys.orig_argv):
    for _number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT):
        signal.signal(_number, _end)
