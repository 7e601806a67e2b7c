"""Commands side by side, each tried again where it fails, until all have ended or a signal asks to stop."""

import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Protocol

import psutil

from retrace.core.errors import Interrupted
from retrace.core.guard import PAUSE

LOGS = Path(".retrace/spread")
TRIES = 2  # a cell that was killed resumes from its checkpoint
Commands = Mapping[str, Sequence[str]]  # by the name of the stage


class Job(Protocol):
    """A command that was started somewhere."""

    def poll(self) -> int | None:
        """Its exit code, None while it lasts."""
        ...

    def stop(self) -> None:
        """Ask it to save its state and end; may be called again and again."""
        ...


class Place(Protocol):
    """Where commands run."""

    verb: str  # what happened to a command that was started

    def start(self, commands: Commands, alone: bool) -> Sequence[Job]:
        """Start them all; `alone` where nothing is to run beside them."""
        ...


def run(place: Place, commands: Commands, at_once: int, received: Sequence[int], alone: bool = False) -> dict[str, int]:
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


class Worker:
    """A `dvc repro` in a process group of its own, whose stage can be asked to save its state and end.

    Its output goes to the end of a file, or where ours goes.
    """

    def __init__(
        self, command: Sequence[str], log: Path | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        file = None if log is None else log.open("ab")
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=environment, process_group=0
        )
        if file is not None:
            file.close()
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
