"""What a stage or a command says when it cannot go on.

An `InputError` is the user's to mend: a file, a row, a key. It ends in one line on stderr and exit
code 2. Anything else is a defect of Retrace and keeps its traceback.
"""

import errno
import gc
import os
import sys
from collections.abc import Callable

from safetensors import SafetensorError

USAGE = 2  # exit code for wrong input, as argparse has it
RESUMABLE = 75  # exit code of work that was asked to stop and goes on when run again (EX_TEMPFAIL of sysexits.h)

# What a stage imports stays to its end, and looking for garbage among it takes a third of every start: seldom while it
# is imported, and never after (`exit_cleanly`).
OFTEN = gc.get_threshold()
gc.set_threshold(100_000)


class InputError(Exception):
    """Wrong input; the message names the file and line, or the key, and what is allowed."""


class ResumableError(Exception):
    """Work was asked to stop and saved where it stood."""


def exit_cleanly(main: Callable[[], None]) -> None:
    """Run `main`; end with one line and exit code 2 where the user can mend what is wrong.

    `RETRACE_TRACEBACK=1` shows the traceback all the same.
    """
    gc.freeze()
    gc.set_threshold(*OFTEN)
    try:
        main()
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads what is printed, such as `head`, has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except InputError as error:
        _fail(str(error))
    except ResumableError as stop:
        print(stop, file=sys.stderr)
        sys.exit(RESUMABLE)
    except FileNotFoundError as error:
        _fail(f"{error.filename}: no such file or folder")
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        _fail(f"{error.filename or 'output'}: {error.strerror}; nothing was left half-written")
    except SafetensorError as error:  # a full disk, which is no OSError there, or damaged weights
        _fail(f"weights: {error}")


def _fail(message: str) -> None:
    if os.environ.get("RETRACE_TRACEBACK"):
        raise  # noqa: PLE0704 - called while the exception is being handled
    print(f"error: {message}", file=sys.stderr)
    sys.exit(USAGE)
