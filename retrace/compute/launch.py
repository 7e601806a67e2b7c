"""Accelerate's launcher, but with the stage's own exit code, where Accelerate turns every failure into a 1.

DVC, Slurm and scripts then see 2 for wrong input and 75 for a run that was asked to stop and resumes when run again.

    python -m retrace.compute.launch --config_file launch/gpus.yaml -m stages.pretrain
"""

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType

from retrace.core.errors import INTERRUPTED, STOPPING, InputError, as_shell, exit_cleanly, prepare_process

# Passed on to the processes by torchrun; by default Slurm's SIGUSR1 would end it and leave them behind.
SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1")
GRACE = "180"  # seconds to save a checkpoint after a signal; torchrun's 30 are too few for a large one
NO_GPU = "Cuda is not available."  # torchrun's ValueError for `num_processes: gpu`


def main() -> None:
    prepare_process()
    from accelerate.commands.launch import launch_command, launch_command_parser
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    arguments = launch_command_parser().parse_args()
    heard = [name for name in SIGNALS if signal.getsignal(signal.Signals[name]) != signal.SIG_IGN]
    arguments.signals_to_handle = ",".join(heard)  # without SIGHUP where `nohup` ignores it
    os.environ.setdefault("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", GRACE)
    _ignore_further_signals()
    if arguments.config_file and not (file := Path(arguments.config_file)).is_file():
        raise InputError(f"{file}: no such file; RETRACE_LAUNCH names a file of launch/, such as gpus")
    try:
        launch_command(arguments)
    except ValueError as error:
        if str(error) != NO_GPU:
            raise
        said = "it starts a process for each GPU; PyTorch finds none here"
        raise InputError(f"{arguments.config_file}: {said}") from None
    except ChildFailedError as error:
        # Within a second, those that lost contact with one that failed, and so end as interrupted, come last.
        first = min(error.failures.values(), key=lambda each: (each.timestamp, _code(each.exitcode) == INTERRUPTED))
        how = f"by signal {-first.exitcode}" if first.exitcode < 0 else f"with exit code {first.exitcode}"
        print(f"process {first.local_rank} ended {how}; the others were stopped", file=sys.stderr)
        sys.exit(_code(first.exitcode))
    except subprocess.CalledProcessError as error:
        sys.exit(_code(error.returncode))
    except SignalException:
        sys.exit(INTERRUPTED)


def _ignore_further_signals() -> None:
    """Let torchrun handle the first signal only: any further one would end it before its processes have saved."""
    from torch.distributed.elastic.multiprocessing import api

    raise_signal = api._terminate_process_handler

    def raise_once(number: int, frame: FrameType | None) -> None:
        for name in SIGNALS:
            signal.signal(signal.Signals[name], signal.SIG_IGN)
        raise_signal(number, frame)

    api._terminate_process_handler = raise_once


def _code(code: int) -> int:
    """The exit code that a shell gives; `Interrupted`'s for a process stopped before it could handle the signal."""
    return INTERRUPTED if -code in STOPPING else as_shell(code)


if __name__ == "__main__":
    exit_cleanly(main)
