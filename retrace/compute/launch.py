"""Accelerate's launcher, which ends with the stage's own exit code, where Accelerate makes a 1 of every other than 0.

DVC, Slurm and scripts then see 2 for wrong input and 75 for a run that was asked to stop and goes on when run again.

    python -m retrace.compute.launch --config_file launch/gpus.yaml -m stages.pretrain
"""

import subprocess
import sys

from accelerate.commands.launch import launch_command, launch_command_parser
from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

from retrace.core.errors import INTERRUPTED
from retrace.core.guard import STOPPING

# What torchrun passes on to its processes; by itself it would end of Slurm's SIGUSR1 and leave them behind.
SIGNALS = "SIGTERM,SIGINT,SIGHUP,SIGQUIT,SIGUSR1"


def main() -> None:
    arguments = launch_command_parser().parse_args()
    arguments.signals_to_handle = SIGNALS
    try:
        launch_command(arguments)
    except ChildFailedError as error:
        _, first = error.get_first_failure()
        print(f"process {first.local_rank} ended {_how(first.exitcode)}; the others were stopped", file=sys.stderr)
        sys.exit(_code(first.exitcode))
    except subprocess.CalledProcessError as error:
        sys.exit(_code(error.returncode))
    except SignalException:
        sys.exit(INTERRUPTED)


def _how(code: int) -> str:
    return f"by signal {-code}" if code < 0 else f"with exit code {code}"


def _code(code: int) -> int:
    """As a shell has it; of a process that was asked to stop before it could heed that, as it says it later."""
    if -code in STOPPING:
        return INTERRUPTED
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    main()
