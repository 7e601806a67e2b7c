"""A pipeline killed at random moments and run again: does it end with the bytes of a run that nothing disturbed?

Every trial takes a toy project in which all stages have run, takes one stage's outputs, its entry in dvc.lock and DVC's
run cache away, starts `dvc repro`, and kills (SIGKILL) the stage, DVC, all at once or, of a stage in two processes, the
launcher or one of the two, at a moment drawn evenly from the length of that run. Then a plain `dvc repro` runs to its
end; where DVC was killed while it wrote its lock, after `retrace check`, as in `make repro`. Training saves its state
every quarter of a second.

    python -m tests.campaigns.kills [--kills 100] [--seed 1]
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import psutil
from ruamel.yaml import YAML

from tests import warm
from tests.toy import Project, copy_project

RESULT = Path(__file__).parents[2] / "benchmarks" / "kills.json"
FINE_TUNING = ("finetune-sst2@sst2-full-1", "finetune-squad@squad-full-1")
STAGES = ("data/dvc.yaml:source", "tokenize", "pretrain", "perplexity-eval", *FINE_TUNING, "evaluate", "report")
SHARED = ("pretrain", "perplexity-eval", *FINE_TUNING)  # that two processes may do
WORDS = {"dvc": "dvc", "launcher": "retrace.compute.launch", "stage": "stages.", "worker": "stages."}  # of a command
# What has times in it, or says that a file was changed.
TIMES = (
    "reports/runs",
    "reports/sources",
    "reports/live",
    "reports/figures/time.svg",
    "reports/report.md",
    "reports/report.html",
)
LOCKS = ("recorded results", "locks")  # checks of `retrace doctor`
CUT = (".dvc/tmp/rwlock", "dvc.lock' is invalid", "dvc.lock' validation failed")  # the last where it is empty
GUESSED = 6.0  # seconds of a run, of a stage that was not run yet
ORPHANS = 60.0  # seconds in which what a killed DVC or launcher had started must have ended
TWO = "compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nnum_machines: 1\nnum_processes: 2\n"


@dataclass(frozen=True)
class Trial:
    """What is killed, and when."""

    stage: str
    victim: str
    moment: float  # as a share of the time of an undisturbed run


@dataclass
class Outcome:
    """What became of a trial; `wrong` says what should not have been."""

    is_killed: bool  # rather than over before
    resumed: bool
    mended: bool  # as `retrace doctor` says, as DVC was killed while it wrote a lock
    wrong: list[str]


class Trials:
    """A project that has run, and a copy of it for each trial."""

    def __init__(self, whole: Path, folder: Path) -> None:
        self._whole, self._folder = whole, folder
        self._seconds: dict[tuple[str, bool, bool], float] = {}
        self._shared: dict[str, dict[str, str]] = {}  # digests of what two processes write

    def kill(self, trial: Trial) -> Outcome:
        """Do one trial."""
        shared, cold = trial.victim in ("launcher", "worker"), trial.victim not in ("stage", "all")
        kind = trial.stage, shared, cold
        if shared and trial.stage not in self._shared:
            project = self.without(*kind)
            self._seconds[kind], _, _ = self._repro(project, trial.stage, shared)
            self._shared[trial.stage] = digests(project.folder)
        project = self.without(*kind)
        running = project.start("dvc", "repro", *self._goals(trial.stage, shared))
        with suppress(subprocess.TimeoutExpired):
            running.wait(trial.moment * self._seconds.get(kind, GUESSED))
        is_killed = running.poll() is None and (kill(project.folder, trial.victim) or kill(project.folder, "all"))
        wrong = [] if all_ended(project.folder) else ["an orphan goes on"]
        running.communicate()
        resumed = any(project.folder.glob(".retrace/states/*/0*"))
        seconds, code, said = self._repro(project, trial.stage, shared)
        if mended := is_held_up(said):
            mend(project)
            _, code, said = self._repro(project, trial.stage, shared)
        elif not resumed:
            self._seconds[kind] = seconds
        wrong += [] if code == 0 else [f"exit code {code}: {said}"]
        whole = self._shared[trial.stage] if shared else digests(self._whole)
        found = digests(project.folder)
        wrong += sorted({name for name, _ in found.items() ^ whole.items()})
        wrong += [str(path) for path in project.folder.rglob("*.partial")]
        return Outcome(is_killed, resumed, mended, wrong)

    def without(self, stage: str, shared: bool = False, cold: bool = False) -> Project:
        """A project in which all stages but this one have run."""
        shutil.rmtree(self._folder, ignore_errors=True)
        shutil.copytree(self._whole, self._folder, symlinks=True)
        shutil.rmtree(self._folder / ".dvc/cache/runs")
        file, _, name = stage.rpartition(":")
        lock = (self._folder / (file or "dvc.yaml")).with_suffix(".lock")
        locked = YAML().load(lock)
        for out in locked["stages"].pop(name)["outs"]:
            path = self._folder / out["path"]
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        YAML().dump(locked, lock)
        variables = {**os.environ, "RETRACE_SAVE_SECONDS": "0.25", "ACCELERATE_USE_CPU": "1"}
        if shared:
            variables["RETRACE_LAUNCH"] = "two"
        if cold:
            variables.pop(warm.VARIABLE, None)
        return Project(self._folder, variables)

    def _repro(self, project: Project, stage: str, shared: bool) -> tuple[float, int, str]:
        """The seconds, exit code and last words of a plain `dvc repro`."""
        began = time.monotonic()
        done = project.run("dvc", "repro", *self._goals(stage, shared), code=None)
        return time.monotonic() - began, done.returncode, done.stdout[-500:] + done.stderr[-1500:]

    def _goals(self, stage: str, shared: bool) -> list[str]:
        """All of it; of a stage in two processes up to there, as the bytes are others from there on."""
        return [stage] if shared else []


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 of all results that have no times in them, by path."""
    files = [path for name in ("data", "models", "predictions", "reports") for path in (folder / name).rglob("*")]
    left_out = [folder / name for name in TIMES]
    return {
        str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest()
        for path in sorted(files)
        if path.is_file() and path.suffix != ".lock" and not any(path.is_relative_to(out) for out in left_out)
    }


def mend(project: Project, checks: Collection[str] = LOCKS) -> int:
    """Do what `retrace doctor` says, by default of the locks with which DVC does not start; how much that was."""
    findings = json.loads(project.stage("retrace.cli.main", "doctor", "--json", code=None).stdout)["findings"]
    wrong = [found for found in findings if found["mend"] and found["check"] in checks]
    for found in wrong:
        command = found["mend"].partition(" && ")[0]  # then comes `dvc repro`
        print(f"{found['found']}: {command}")
        project.run("sh", "-c", command)
    return len(wrong)


def is_held_up(said: str) -> bool:
    """Whether DVC says that a lock is cut, which it was writing when it was killed."""
    return any(words in said for words in CUT)


def processes(folder: Path) -> Iterator[psutil.Process]:
    """What runs in a project's folder."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if Path(process.cwd()).is_relative_to(folder) and process.status() != psutil.STATUS_ZOMBIE:
                yield process


def kill(folder: Path, victim: str) -> bool:
    """Kill one process of a kind, or all; False where none runs, as the launcher before DVC has started it."""
    found = [process for process in processes(folder) if is_victim(process, victim)]
    if victim in WORDS and not is_warm(victim):
        found = found[-1:]
    for process in found:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGKILL)
    return bool(found)


def is_warm(victim: str) -> bool:
    """Whether the victim runs in a child of the tests' server, with that server's command line."""
    return victim == "stage" and bool(os.environ.get(warm.VARIABLE))


def is_victim(process: psutil.Process, victim: str) -> bool:
    """Whether a process is of the kind; none is that has just ended."""
    with suppress(psutil.Error):
        command = process.cmdline()
        if victim == "all":
            return True
        if is_warm(victim):
            return not process.children() and "serve" in command
        return is_of(command, WORDS[victim])
    return False


def is_of(command: Sequence[str], word: str) -> bool:
    """Whether a Python process was started with a module or program of this name."""
    is_python = bool(command) and "python" in Path(command[0]).name
    return is_python and any(Path(part).name.startswith(word) for part in command[1:4])


def all_ended(folder: Path) -> bool:
    """Whether all processes end by themselves; what is left is killed."""
    end = time.monotonic() + ORPHANS
    while left := list(processes(folder)):
        if time.monotonic() > end:
            for process in left:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            return False
        time.sleep(0.1)
    return True


def drawn(count: int, seed: int) -> list[Trial]:
    """Trials of every stage in turn, their victims in turn too."""
    draw = random.Random(seed)
    cases = [(stage, victim) for victim in ("stage", "dvc", "all") for stage in STAGES]
    cases += [(stage, victim) for victim in ("launcher", "worker") for stage in SHARED]
    draw.shuffle(cases)
    return [Trial(*cases[number % len(cases)], draw.random()) for number in range(count)]


def toy(folder: Path) -> Path:
    """A toy project that has run, with enough updates to be killed in."""
    project = copy_project(folder, git=True)
    project.set_all({"finetune.methods": ["full"], "finetune.squad_methods": ["full"], "pretrain.epochs": 6})
    project.set_all({"sst2.epochs": 3, "squad.epochs": 3})
    (project.folder / "launch/two.yaml").write_text(TWO)
    project.commit("toy")
    project.run("dvc", "repro")
    return folder


def write(path: Path, result: Mapping[str, Any]) -> None:
    """Keep what a campaign has found by now."""
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(result, indent=2) + "\n")
    partial.replace(path)


def options(about: str | None, counted: str, count: int) -> tuple[int, int]:
    """How many trials a campaign makes, and from which seed it draws them, by its command line."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(f"--{counted}", type=int, default=count, dest="count")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    return arguments.count, arguments.seed


@contextmanager
def campaign_folder() -> Iterator[Path]:
    """A folder that is removed at the end, on SIGTERM too, with what runs in it; stages start from a warm server."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        os.environ[warm.VARIABLE] = warm.address(folder)
        try:
            yield folder
        finally:
            kill(folder, "all")


@contextmanager
def finished_toy() -> Iterator[tuple[Path, Path]]:
    """A toy project that has run, and a folder for trials."""
    with campaign_folder() as folder:
        yield toy(folder / "whole"), folder


def main() -> None:
    count, seed = options(__doc__, "kills", 100)
    found, total = dict[str, Counter[str]](), Counter[str]()
    with finished_toy() as (whole, folder):
        trials = Trials(whole, folder / "trial")
        for number, trial in enumerate(drawn(count, seed), start=1):
            outcome = trials.kill(trial)
            print(number, trial, outcome, flush=True)
            of = found.setdefault(f"{trial.stage}, {trial.victim}", Counter())
            of += Counter(runs=1, killed=outcome.is_killed, resumed=outcome.resumed, mended=outcome.mended)
            of += Counter(same=not outcome.wrong)
            total = sum(found.values(), Counter())
            write(RESULT, {"seed": seed, "total": total, **dict(sorted(found.items()))})  # each time: hours may be cut
    print(json.dumps(total))
    sys.exit(total["same"] != total["runs"])


if __name__ == "__main__":
    main()
