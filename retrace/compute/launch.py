"""Accelerate's launcher, but with the stage's own exit code, where Accelerate turns every failure into a 1.

DVC, Slurm and scripts then see 2 for wrong input and 75 for a run that was asked to stop and resumes when run again.

    python -m retrace.compute.launch --config_file launch/gpus.yaml -m stages.pretrain
"""

import subprocess
import sys
from pathlib import Path

from retrace.core.errors import INTERRUPTED, STOPPING, InputError, exit_cleanly, prepare_process

# Passed on to the processes by torchrun; by default Slurm's SIGUSR1 would end it and leave them behind.
SIGNALS = "SIGTERM,SIGINT,SIGHUP,SIGQUIT,SIGUSR1"


def main() -> None:
    prepare_process()
    from accelerate.commands.launch import launch_command, launch_command_parser
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    arguments = launch_command_parser().parse_args()
    arguments.signals_to_handle = SIGNALS
    if arguments.config_file and not (file := Path(arguments.config_file)).is_file():
        raise InputError(f"{file}: no such file; RETRACE_LAUNCH names one of launch/, such as gpus")
    try:
        launch_command(arguments)
    except ChildFailedError as error:
        _, first = error.get_first_failure()
        how = f"by signal {-first.exitcode}" if first.exitcode < 0 else f"with exit code {first.exitcode}"
        print(f"process {first.local_rank} ended {how}; the others were stopped", file=sys.stderr)
        sys.exit(_code(first.exitcode))
    except subprocess.CalledProcessError as error:
        sys.exit(_code(error.returncode))
    except SignalException:
        sys.exit(INTERRUPTED)


def _code(code: int) -> int:
    """The exit code as in a shell; that of `Interrupted` for a process stopped before it could handle the signal."""
    if -code in STOPPING:
        return INTERRUPTED
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    exit_cleanly(main)
