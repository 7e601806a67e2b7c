"""What a stage or a command says when it cannot go on.

An `InputError` is the user's to mend: a file, a row, a key. It ends in one line on stderr and exit
code 2. Anything else is a defect of Retrace and keeps its traceback.
"""

import errno
import gc
import io
import os
import sys
from collections.abc import Callable
from typing import Any

from safetensors import SafetensorError

USAGE = 2  # exit code for wrong input, as argparse has it
INTERRUPTED = 75  # exit code of work that was asked to stop and goes on when run again (EX_TEMPFAIL of sysexits.h)

# What a stage imports stays to its end, and looking for garbage among it takes a third of every start: seldom while it
# is imported, and never after (`exit_cleanly`).
OFTEN = gc.get_threshold()
gc.set_threshold(100_000)


class InputError(Exception):
    """Wrong input; the message names the file and line, or the key, and what is allowed."""


class Interrupted(Exception):  # noqa: N818 - no error: it goes on when run again
    """Work was asked to stop and saved where it stood."""


class HeedlessOutput(io.FileIO):
    """Standard output or error that nobody may read any longer: whoever reads it, such as `head`, has read enough.

    That is no reason to leave work undone, so what is written from then on goes nowhere.
    """

    def write(self, data: Any) -> int | None:
        try:
            return super().write(data)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            return super().write(data)


def exit_cleanly(main: Callable[[], None]) -> None:
    """Run `main`; end with one line and exit code 2 where the user can mend what is wrong.

    `RETRACE_TRACEBACK=1` shows the traceback all the same.
    """
    _print_heedlessly()
    gc.freeze()
    gc.set_threshold(*OFTEN)
    try:
        main()
        sys.stdout.flush()
    except InputError as error:
        _fail(str(error))
    except Interrupted as stop:
        print(stop, file=sys.stderr)
        sys.exit(INTERRUPTED)
    except FileNotFoundError as error:
        _fail(f"{error.filename}: no such file or folder")
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        _fail(f"{error.filename or 'output'}: {error.strerror}; nothing was left half-written")
    except SafetensorError as error:  # a full disk, which is no OSError there, or damaged weights
        _fail(f"weights: {error}")


def _print_heedlessly() -> None:
    """Have this process's own standard output and error, but not what a test put in their place, print heedlessly."""
    for name, own in (("stdout", sys.__stdout__), ("stderr", sys.__stderr__)):
        if own is not None and getattr(sys, name) is own:
            own.flush()
            binary = io.BufferedWriter(HeedlessOutput(own.fileno(), "w", closefd=False))
            is_direct = own.line_buffering or own.write_through or name == "stderr"  # the second of python -u
            setattr(sys, name, io.TextIOWrapper(binary, own.encoding, own.errors, line_buffering=is_direct))


def _fail(message: str) -> None:
    if os.environ.get("RETRACE_TRACEBACK"):
        raise  # noqa: PLE0704 - called while the exception is being handled
    print(f"error: {message}", file=sys.stderr)
    sys.exit(USAGE)
