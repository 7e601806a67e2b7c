"""Commands side by side, each tried again where it fails, until all have ended or a signal asks to stop.

They run as processes of this machine or as jobs of Slurm.
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

from retrace.core.errors import INTERRUPTED, InputError, Interrupted
from retrace.core.guard import PAUSE

LOGS = Path(".retrace/spread")
JOBS = LOGS / "jobs"
HOURS = 4  # of a job, which then goes back into the queue; SBATCH_TIMELIMIT is for another limit
NOTICE = 180  # seconds before it is stopped, to save its state in
REQUEUED = 1000  # times at most
IGNORING = ("sh", "-c", "trap '' USR1 USR2; exec \"$@\"", "sh")  # Slurm's signals go to all processes of a job
TRIES = 2  # a cell that was killed resumes from its checkpoint
Commands = Mapping[str, Sequence[str]]  # by the name of the stage


class Worker:
    """A `dvc repro` in a process group of its own, whose stage can be asked to save its state and end.

    Its output goes to the end of a file, or where ours goes.
    """

    def __init__(
        self, command: Sequence[str], log: Path | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        with nullcontext() if log is None else log.open("ab") as file:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=environment, process_group=0
            )
        self._asked: set[int] = set()

    def poll(self) -> int | None:
        """The exit code, None while the command lasts or, where it was killed, what it had started lasts."""
        code = self.process.poll()
        if code is not None and code < 0 and self._programs():
            self.stop()  # the stage, which nobody would record
            return None
        return code

    def stop(self) -> None:
        """Ask the stage to end, once: launchers and DVC then end by themselves, and say how it did."""
        for process in self._programs():
            with suppress(psutil.NoSuchProcess):
                if process.pid not in self._asked and not process.children():
                    self._asked.add(process.pid)
                    process.send_signal(signal.SIGTERM)

    def _programs(self) -> set[psutil.Process]:
        """What the command started: the processes of its group, and theirs, which may lead groups of their own."""
        found: set[psutil.Process] = set()
        for process in psutil.process_iter():
            with suppress(psutil.NoSuchProcess, ProcessLookupError):
                if os.getpgid(process.pid) == self.process.pid and process.status() != psutil.STATUS_ZOMBIE:
                    found.update((process, *process.children(recursive=True)))
        return {process for process in found if process.pid != self.process.pid}


class Here:
    """Processes of this machine, which share its cores."""

    verb = "started"

    def __init__(self, at_once: int) -> None:
        threads = str(max(1, len(os.sched_getaffinity(0)) // at_once))
        self.environment = {**({} if at_once == 1 else {"RETRACE_THREADS": threads}), **os.environ}

    def start(self, commands: Commands, alone: bool) -> list[Worker]:
        """Start them all; what runs alone prints here and has all cores."""
        if alone:
            return [Worker(command) for command in commands.values()]
        return [Worker(command, log_of(name), self.environment) for name, command in commands.items()]


class Command:
    """What a job of Slurm runs; submitit calls `checkpoint` when the job's time is up or it is preempted."""

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

    def checkpoint(self) -> Any:
        """Have the stage save its state; returns submitit's DelayedSubmission of what is to be run next time."""
        from submitit.helpers import DelayedSubmission

        while self._worker is not None and self._worker.poll() is None:
            self._worker.stop()
            time.sleep(PAUSE)
        return DelayedSubmission(Command(self._command, self._log))


class Queued:
    """A job of Slurm, or of submitit's stand-in for it."""

    def __init__(self, job: Any) -> None:
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
    """Where each command is a job: of Slurm by submitit, or a process of this machine where there is no `srun`.

    What a job is given is said in the variables that `sbatch` reads, such as SBATCH_PARTITION and SBATCH_GPUS.
    """

    verb = "queued"

    def __init__(self) -> None:
        try:
            import submitit
        except ImportError:
            raise InputError("--slurm: submitit is not installed; pip install submitit") from None
        self._executor = submitit.AutoExecutor(JOBS, slurm_max_num_timeout=REQUEUED)
        parameters: dict[str, Any] = {"name": "retrace", "timeout_min": 60 * HOURS, "slurm_signal_delay_s": NOTICE}
        self._executor.update_parameters(**parameters)

    def start(self, commands: Commands, alone: bool) -> list[Queued]:
        """Put them all into the queue, as one array."""
        JOBS.mkdir(parents=True, exist_ok=True)
        with self._executor.batch():
            jobs = [
                self._executor.submit(Command(command, log_of(name).resolve())) for name, command in commands.items()
            ]
        if alone:
            print(*(f"job {job.job_id}: {log_of(name)}" for name, job in zip(commands, jobs, strict=True)), flush=True)
        return [Queued(job) for job in jobs]


Job = Worker | Queued


def run(
    place: Here | Slurm, commands: Commands, at_once: int, received: Sequence[int], alone: bool = False
) -> dict[str, int]:
    """Run commands; exit codes of those that failed, by name. `received` are the signals that asked to stop.

    Raises Interrupted where there was one, when all that ran have ended.
    """
    waiting, running, tries, failed = list(commands), dict[str, Job](), Counter[str](), dict[str, int]()
    began = time.monotonic()

    def say(name: str, state: str) -> None:
        if not alone:
            print(f"{timedelta(seconds=int(time.monotonic() - began))} {name}: {state}", flush=True)

    LOGS.mkdir(parents=True, exist_ok=True)
    for name in commands:
        log_of(name).unlink(missing_ok=True)
    while running or (waiting and not received):
        begun = [] if received else waiting[: at_once - len(running)]
        del waiting[: len(begun)]
        if begun:
            running.update(zip(begun, place.start({name: commands[name] for name in begun}, alone), strict=True))
        for name in begun:
            say(name, place.verb)
        tries.update(begun)
        time.sleep(PAUSE)
        for name, code in _ended(running, bool(received)).items():
            if code == 0:
                say(name, "done")
            elif tries[name] < TRIES and not alone and not received:
                say(name, "failed, to be tried again")
                waiting.append(name)
            else:
                say(name, "stopped" if received else "failed")
                failed[name] = code
    if received:
        raise Interrupted("stopped; run it again to go on from the saved states")
    return failed


def log_of(name: str) -> Path:
    """The file of a command's output."""
    return LOGS / f"{name}.log"


def reason(name: str) -> str:
    """What a command said of its failure."""
    lines = list(filter(str.strip, log_of(name).read_text(encoding="utf-8", errors="replace").splitlines()))
    said = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")] or lines or ["no output"]
    return f"{said[-1]} ({log_of(name)})"


def _ended(running: dict[str, Job], stop: bool) -> dict[str, int]:
    """Take out those that have ended; their exit codes."""
    if stop:
        for job in running.values():
            job.stop()
    codes = {name: code for name, job in running.items() if (code := job.poll()) is not None}
    for name in codes:
        del running[name]
    return codes
