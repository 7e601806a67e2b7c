"""Commands as jobs of Slurm, by submitit; as processes of this machine where there is no `srun`.

What a job is given is said in Slurm's own variables, such as SBATCH_PARTITION and SBATCH_GPUS, which `sbatch` reads.
"""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from retrace.cli.crew import Commands, Worker, log_of
from retrace.core.errors import INTERRUPTED, InputError
from retrace.core.guard import PAUSE

try:
    import submitit
    from submitit.helpers import DelayedSubmission
except ImportError:
    raise InputError("--slurm: submitit is not installed; pip install submitit") from None

FOLDER = Path(".retrace/spread/jobs")
HOURS = 4  # of a job, which then goes back into the queue; SBATCH_TIMELIMIT is for another limit
NOTICE = 180  # seconds before it is stopped, to save its state in
REQUEUED = 1000  # times at most
IGNORING = ("sh", "-c", "trap '' USR1 USR2; exec \"$@\"", "sh")  # Slurm's signals go to all processes of a job


class Command:
    """What a job runs; submitit calls `checkpoint` when the job's time is up or it is preempted."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self._command, self._log, self._gpus = command, log, os.environ.get("CUDA_VISIBLE_DEVICES")
        self._worker: Worker | None = None

    def __call__(self) -> int:
        """Run the command to its end; its exit code."""
        environment = dict(os.environ)
        if environment.get("SUBMITIT_EXECUTOR") == "local":  # which shows all jobs the same GPUs, or none
            environment.pop("CUDA_VISIBLE_DEVICES", None)
            environment |= {} if self._gpus is None else {"CUDA_VISIBLE_DEVICES": self._gpus}
        self._worker = Worker([*IGNORING, *self._command], self._log, environment)
        while (code := self._worker.poll()) is None:
            time.sleep(PAUSE)
        return code

    def checkpoint(self) -> DelayedSubmission:
        """Have the stage save its state, and say what is to be run next time."""
        while self._worker is not None and self._worker.poll() is None:
            self._worker.stop()
            time.sleep(PAUSE)
        return DelayedSubmission(Command(self._command, self._log))


class Queued:
    """A job of Slurm, or of submitit's stand-in for it."""

    def __init__(self, job: "submitit.Job[int]") -> None:
        self._job, self._is_cancelled = job, False

    def poll(self) -> int | None:
        """The command's exit code, None while it is queued or lasts; 1 where the job itself failed."""
        if self._is_cancelled:
            return INTERRUPTED
        if not self._job.done():
            return None
        return 1 if self._job.exception() is not None else self._job.result()

    def stop(self) -> None:
        """Cancel it: Slurm asks its processes to end, and the stage saves its state first."""
        self._job.cancel()
        self._is_cancelled = True


class Slurm:
    """Where each command is a job."""

    verb = "queued"

    def __init__(self) -> None:
        self._executor = submitit.AutoExecutor(FOLDER, slurm_max_num_timeout=REQUEUED)
        parameters: dict[str, Any] = {"name": "retrace", "timeout_min": 60 * HOURS, "slurm_signal_delay_s": NOTICE}
        self._executor.update_parameters(**parameters)

    def start(self, commands: Commands, alone: bool) -> list[Queued]:
        """Put them all into the queue, as one array."""
        FOLDER.mkdir(parents=True, exist_ok=True)
        with self._executor.batch():
            jobs = [
                self._executor.submit(Command(command, log_of(name).resolve())) for name, command in commands.items()
            ]
        if alone:
            print(*(f"job {job.job_id}: {log_of(name)}" for name, job in zip(commands, jobs, strict=True)), flush=True)
        return [Queued(job) for job in jobs]
