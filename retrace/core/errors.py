"""How the process of a stage is prepared, and how a stage or a command ends when it cannot go on.

`InputError` is a mistake that the user can fix: a file, a row, a key. It ends in one line on stderr and exit code 2, as
does a file that cannot be read or written; training that diverged ends in 3. Any other exception is a bug in Retrace
and keeps its traceback.
"""

import atexit
import ctypes
import errno
import io
import os
import re
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

from safetensors import SafetensorError

BEGAN = time.time()  # seconds since 1970; of our code, only the packages' __init__.py files are loaded before this file
USAGE = 2  # exit code for wrong input, as in argparse
DIVERGED = 3  # exit code of training that cannot go on with these settings
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # disk full, quota exceeded, file too large
PARENT_ENDS = 1  # PR_SET_PDEATHSIG of Linux's prctl.h
STOPPING = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)  # kill, Slurm before the time limit, Ctrl-C
MOST_SHOWN = 200  # characters of a value, or of what a library says, in a message
INTERRUPTED = 75  # exit code of work that was asked to stop and resumes when run again (EX_TEMPFAIL of sysexits.h)


class InputError(Exception):
    """Wrong input; the message names the file and line, or the key, and what is allowed, without users in URLs."""

    def __init__(self, message: str) -> None:
        super().__init__(without_users(message))


def without_users(text: str) -> str:
    """The text with user names and passwords removed from its URLs."""
    return re.sub(r"(?<=://)[^/\s]+@", "", text)


def first_line(said: object) -> str:
    """The first non-empty line of a library's message; for an error without a message, its type."""
    lines = filter(None, map(str.strip, str(said).splitlines()))
    return next(lines, type(said).__name__ if isinstance(said, BaseException) else "")


def one_line(error: Exception) -> str:
    """A library's whole error message, in one line, cut if it is long."""
    return " ".join(str(error).split())[:MOST_SHOWN] or type(error).__name__


class DivergedError(InputError):
    """Training cannot go on: the loss is not finite or rose, or a batch has no target; checkpoints are not affected."""


class Interrupted(BaseException):
    """Work was asked to stop, and resumes when run again; no Exception, which libraries may take for an error."""


class _Output(io.FileIO):
    """Standard output or error that discards output once its reader, such as `head`, has gone."""

    def write(self, data: Any) -> int | None:
        try:
            return super().write(data)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            return super().write(data)


def prepare_process() -> None:
    """Keep idle threads from spinning, and end a stage when its DVC ends; called before imports that take seconds."""
    # OpenMP's threads spin 300,000 times by default, which keeps a core from a process that has work for it. The
    # variable is read when PyTorch is imported.
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    # A stage ends with the DVC that started it, even one ended by SIGKILL: its results would not be recorded, and it
    # would write its files while the next `dvc repro` does too.
    if os.environ.get("DVC_STAGE") and sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(PARENT_ENDS, signal.SIGTERM)
    if any(word.startswith("stages.") for word in sys.orig_argv):  # not in a test that imports a stage
        for number in STOPPING:
            signal.signal(number, _stop)


def _stop(number: int, frame: FrameType | None) -> None:
    """End as a guarded stage does later on; an import might catch an exception."""
    os.write(2, b"asked to stop; run it again\n")
    os._exit(INTERRUPTED)


def as_shell(code: int) -> int:
    """The exit code that a shell gives: 128 plus the signal for a killed process, where `subprocess` gives -signal."""
    return code if code >= 0 else 128 - code


def exit_cleanly(main: Callable[[], None]) -> None:
    """Run `main`; end with one line and exit code 2, or 3, where the user can fix what is wrong.

    `RETRACE_TRACEBACK=1` shows the traceback instead.
    """
    _keep_printing()
    try:
        main()
        if os.environ.get("DVC_STAGE"):
            _leave()
        if sys.stdout:  # None if it is closed
            sys.stdout.flush()
    except InputError as error:
        _fail(str(error), DIVERGED if isinstance(error, DivergedError) else USAGE)
    except Interrupted as stop:
        print(stop, file=sys.stderr)
        sys.exit(INTERRUPTED)
    except FileNotFoundError as error:
        if error.filename is None:  # safetensors raises it for every file that it cannot open
            _fail(f"{str(error).rpartition(': ')[2]}: no such file, or it cannot be read")
        _fail(f"{error.filename}: no such file or folder")
    except OSError as error:  # one without a file, such as a broken connection, is not handled here
        is_full = error.errno in FULL
        if error.filename is None and not is_full:
            raise
        if error.filename is None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # else Python fails again when it flushes at exit
            _fail(f"output: {error.strerror}")
        _fail(f"{error.filename}: {error.strerror}{'; nothing was left half-written' if is_full else ''}")
    except MemoryError as error:  # Python's is empty, NumPy's names the array
        _fail(f"out of memory{f': {error}' if str(error) else ''}; use a smaller model, smaller batches or less data")
    except SafetensorError as error:  # damaged weights
        _fail(f"weights: {error}")


def _leave() -> NoReturn:
    """Exit without the interpreter's teardown: in its 0.3 s, an edit would be recorded as if it had been run."""
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _keep_printing() -> None:
    """Keep working if the reader of this process's output has gone, or if its encoding lacks a character.

    Streams that a test replaced are left alone.
    """
    for name, own in (("stdout", sys.__stdout__), ("stderr", sys.__stderr__)):
        if own is not None and getattr(sys, name) is own:
            own.flush()
            binary = io.BufferedWriter(_Output(own.fileno(), "w", closefd=False))
            is_direct = own.line_buffering or own.write_through or name == "stderr"  # write_through: python -u
            text = io.TextIOWrapper(binary, own.encoding, "backslashreplace", line_buffering=is_direct)
            setattr(sys, name, text)


def _fail(message: str, code: int = USAGE) -> None:
    if os.environ.get("RETRACE_TRACEBACK", "0") not in ("", "0"):
        raise  # noqa: PLE0704 - called while the exception is being handled
    print(f"error: {printable(message)}", file=sys.stderr)
    sys.exit(code)


def printable(text: str) -> str:
    """The text with its control characters escaped, as those in names and data could rewrite the terminal."""
    return re.sub(r"[\x00-\x1f\x7f-\x9f]", lambda found: ascii(found[0])[1:-1], text)
