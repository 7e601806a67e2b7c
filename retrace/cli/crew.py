"""Commands side by side, each tried again where it fails, until all have ended or a signal asks to stop."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Protocol

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
