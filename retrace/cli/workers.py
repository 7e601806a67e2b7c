"""Run commands side by side, retrying those that fail, until all have ended or a signal asks to stop.

They run as processes on this machine or as Slurm jobs.
"""

import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil

from retrace.core.environment import cores
from retrace.core.errors import INTERRUPTED, InputError, Interrupted, one_line
from retrace.core.guard import PAUSE

LOGS = Path(".retrace/spread")
JOBS = LOGS / "jobs"
HOURS = 4  # time limit of a job, which is then requeued; SBATCH_TIMELIMIT sets another
NOTICE = 180  # how long before the time limit a job is told to save its state, in seconds
REQUEUED = 1000  # the most times that a job is requeued
IGNORING = ("sh", "-c", "trap '' USR1 USR2; exec \"$@\"", "sh")  # Slurm signals all processes of a job
TRIES = 2  # a cell that was killed resumes from its checkpoint
AGAIN = "\ntried again:\n"  # in a log, before the output of another try
Commands = Mapping[str, Sequence[str]]  # by the name of the stage


class Worker:
    """A command such as `dvc repro`, in its own process group; its stage can be asked to save its state and exit.

    Its output is appended to the file `log`, or shown.
    """

    def __init__(self, command: Sequence[str], log: Path | None = None, env: Mapping[str, str] | None = None) -> None:
        with nullcontext() if log is None else log.open("ab") as out:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env, process_group=0
            )
        self._asked: set[int] = set()

    def poll(self) -> int | None:
        """The exit code; None while the command runs or, if it was killed, while a process it started still runs."""
        code = self.process.poll()
        if code is not None and code < 0 and self._programs():
            self.stop()  # no DVC is left to record what the stage makes
            return None
        return code

    def stop(self) -> None:
        """Ask the stage, once, to exit; launchers and DVC then exit by themselves and report how it ended."""
        for process in self._programs():
            with suppress(psutil.NoSuchProcess):
                if process.pid not in self._asked and not process.children():
                    self._asked.add(process.pid)
                    process.send_signal(signal.SIGTERM)

    def _programs(self) -> set[psutil.Process]:
        """The processes in the command's group and their descendants, which may be in other groups."""
        found: set[psutil.Process] = set()
        for process in psutil.process_iter():
            with suppress(psutil.NoSuchProcess, ProcessLookupError):
                if os.getpgid(process.pid) == self.process.pid and process.status() != psutil.STATUS_ZOMBIE:
                    found.update((process, *process.children(recursive=True)))
        return {process for process in found if process.pid != self.process.pid}


class Here:
    """Runs commands as processes on this machine, which share its cores."""

    verb = "started"

    def __init__(self, at_once: int) -> None:
        self.environment = dict(os.environ)
        if at_once > 1:
            threads = max(1, cores() // at_once)
            self.environment.setdefault("RETRACE_THREADS", str(threads))

    def start(self, commands: Commands, alone: bool) -> list[Worker]:
        """Start them all; a command that runs alone prints here and has all cores."""
        if alone:
            return [Worker(command) for command in commands.values()]
        return [Worker(command, log_of(name), self.environment) for name, command in commands.items()]


class Command:
    """What a Slurm job runs; submitit calls `checkpoint` when the job reaches its time limit or is preempted."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self._command, self._log, self._gpus = command, log, os.environ.get("CUDA_VISIBLE_DEVICES")
        self._worker: Worker | None = None

    def __call__(self) -> int:
        """Run the command and return its exit code."""
        environment = dict(os.environ)
        if environment.get("SUBMITIT_EXECUTOR") == "local":  # it shows all jobs the same GPUs, or none
            environment.pop("CUDA_VISIBLE_DEVICES", None)
            if self._gpus is not None:
                environment["CUDA_VISIBLE_DEVICES"] = self._gpus
        self._worker = Worker([*IGNORING, *self._command], self._log, environment)
        while (code := self._worker.poll()) is None:
            time.sleep(PAUSE)
        return code

    def checkpoint(self) -> Any:
        """Have the stage save its state; returns the DelayedSubmission with which submitit requeues the job."""
        from submitit.helpers import DelayedSubmission

        while self._worker is not None and self._worker.poll() is None:
            self._worker.stop()
            time.sleep(PAUSE)
        return DelayedSubmission(Command(self._command, self._log))


class Queued:
    """A job in Slurm's queue, or in that of submitit's local executor."""

    def __init__(self, job: Any) -> None:
        self._job, self._is_cancelled = job, False

    def poll(self) -> int | None:
        """The command's exit code; None while it is queued or running, 1 if the job itself failed."""
        if self._is_cancelled:
            return INTERRUPTED
        if not self._job.done():
            return None
        return 1 if self._job.exception() is not None else self._job.result()

    def stop(self) -> None:
        """Cancel the job: Slurm signals its processes, and the stage saves its state before it exits."""
        self._job.cancel()
        self._is_cancelled = True


class Slurm:
    """Runs each command as a job that submitit hands to Slurm, or as a process on this machine if there is no `srun`.

    Resources are set by the variables that `sbatch` reads, such as SBATCH_PARTITION and SBATCH_GPUS.
    """

    verb = "queued"

    def __init__(self) -> None:
        try:
            import submitit
        except ImportError:
            raise InputError("--slurm: submitit is not installed; pip install submitit") from None
        self._executor = submitit.AutoExecutor(JOBS, slurm_max_num_timeout=REQUEUED)
        self._executor.update_parameters(name="retrace", timeout_min=60 * HOURS, slurm_signal_delay_s=NOTICE)

    def start(self, commands: Commands, alone: bool) -> list[Queued]:
        """Queue them all as one job array; raises InputError if Slurm refuses it."""
        from submitit.core.utils import FailedJobError

        JOBS.mkdir(parents=True, exist_ok=True)
        try:
            with self._executor.batch():
                jobs = [
                    self._executor.submit(Command(command, log_of(name).resolve()))
                    for name, command in commands.items()
                ]
        except FailedJobError as error:  # sbatch's own message
            raise InputError(f"--slurm: {one_line(error)}") from None
        if alone:
            print(*(f"job {job.job_id}: {log_of(name)}" for name, job in zip(commands, jobs, strict=True)), flush=True)
        return [Queued(job) for job in jobs]


def run(place: Here | Slurm, commands: Commands, received: Sequence[int], at_once: int | None = None) -> dict[str, int]:
    """Run commands and return the exit codes of those that failed, by name.

    `at_once` is how many run side by side; None: a command that runs alone, is not retried, and prints here.
    `received` are the signals that asked to stop. Raises Interrupted, once all have ended, if there was one.
    """
    LOGS.mkdir(parents=True, exist_ok=True)
    for name in commands:
        log_of(name).unlink(missing_ok=True)
    runs = _Runs(place, commands, alone=at_once is None)
    while runs.running or (runs.waiting and not received):
        if not received:
            runs.start((at_once or 1) - len(runs.running))
        time.sleep(PAUSE)
        runs.settle(is_stopping=bool(received))
    if received:
        raise Interrupted("stopped; run it again to resume from the saved states")
    return runs.failed


class _Runs:
    """Commands that wait, those that run, and the exit codes of those that failed."""

    def __init__(self, place: Here | Slurm, commands: Commands, alone: bool) -> None:
        self._place, self._commands, self._alone = place, commands, alone
        self._tries: Counter[str] = Counter()
        self._began = time.monotonic()
        self.waiting = list(commands)
        self.running: dict[str, Worker | Queued] = {}
        self.failed: dict[str, int] = {}

    def start(self, most: int) -> None:
        """Start up to `most` of those that wait."""
        begun = self.waiting[:most]
        del self.waiting[: len(begun)]
        if begun:
            jobs = self._place.start({name: self._commands[name] for name in begun}, self._alone)
            self.running.update(zip(begun, jobs, strict=True))
        self._tries.update(begun)
        for name in begun:
            self._say(name, self._place.verb)

    def settle(self, is_stopping: bool) -> None:
        """Record those that ended; one that failed is queued for another try, unless all are to stop."""
        if is_stopping:
            for job in self.running.values():
                job.stop()
        ended = {name: code for name, job in self.running.items() if (code := job.poll()) is not None}
        for name, code in ended.items():
            del self.running[name]
            if code == 0:
                self._say(name, "done")
            elif self._tries[name] < TRIES and not self._alone and not is_stopping:
                self._say(name, "failed, retrying")
                self.waiting.append(name)
                if log_of(name).is_file():
                    with log_of(name).open("a") as log:
                        log.write(AGAIN)
            else:
                self._say(name, "stopped" if is_stopping else "failed")
                self.failed[name] = code

    def _say(self, name: str, state: str) -> None:
        if not self._alone:
            print(f"{timedelta(seconds=int(time.monotonic() - self._began))} {name}: {state}", flush=True)


def log_of(name: str) -> Path:
    """The file that a command's output goes to."""
    return LOGS / f"{name}.log"


def why_failed(name: str) -> str:
    """Why a command failed: the last error message of its last try, or the last line of that try's output."""
    log = log_of(name)
    if not log.is_file():
        return f"the job did not start ({JOBS})"
    _, _, last = log.read_text(encoding="utf-8", errors="replace").rpartition(AGAIN)
    lines = list(filter(str.strip, last.splitlines()))
    reasons = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")] or lines or ["no output"]
    return f"{reasons[-1]} ({log})"
