"""What campaigns share: their command line, the toy project that has run, copies of it, and what is killed in them.

What DVC was writing when it was killed may have to be repaired, as `retrace doctor` says, before it starts again.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import NamedTuple

import psutil
from ruamel.yaml import YAML

from retrace.core.files import write_json
from tests import warm
from tests.toy import ROOT, Project, copy_project

RESULTS = ROOT / "benchmarks"
FINE_TUNING = ("finetune-sst2@sst2-full-1", "finetune-squad@squad-full-1")
STAGES = ("data/dvc.yaml:source", "tokenize", "pretrain", "perplexity-eval", *FINE_TUNING, "evaluate", "report")
WORDS = {"dvc": "dvc", "launcher": "retrace.compute.launch", "stage": "stages.", "worker": "stages."}  # of a command
# What has times in it, or says that a file was changed.
TIMES = (
    "reports/runs", "reports/sources", "reports/live", "reports/figures/time.svg", "reports/report.md",
    "reports/report.html",
)  # fmt: skip
UNCACHED = ("reports/metrics.json", "reports/perplexity.json")  # which DVC leaves to git
LOCKS = ("recorded results", "locks")  # checks of `retrace doctor`
CUT = (".dvc/tmp/rwlock", "dvc.lock' is invalid", "dvc.lock' validation failed")  # the last where it is empty
ORPHANS = 60.0  # seconds in which what a killed DVC or launcher had started must have ended
TWO = "compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nnum_machines: 1\nnum_processes: 2\n"


class Outcome(NamedTuple):
    """The outcome of a trial."""

    kind: str
    wrong: Sequence[str]  # what should not have been
    counts: Mapping[str, int] = MappingProxyType({})


Campaign = Callable[[Path, Path, int, Random], Iterable[Outcome]]


def main(campaign: Campaign, about: str | None, count: int = 1, counted: str = "trials") -> None:
    """Run a campaign's trials on a toy project that has run, a given number of them drawn from a seed.

    Outcomes are counted by kind and written to benchmarks/ after each trial, as hours of work may be cut short; if a
    trial failed, this process ends with an error. Stages start from a warm server. At the end, on SIGTERM too, the
    folder is removed with what runs in it.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(f"--{counted}", type=int, default=count, dest="count")
    parser.add_argument("--seed", type=int, default=1)
    given, found, total = parser.parse_args(), dict[str, Counter[str]](), Counter[str]()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        os.environ[warm.VARIABLE] = warm.address(folder)
        try:
            for kind, wrong, counts in campaign(toy(folder / "whole"), folder, given.count, Random(given.seed)):
                print(kind, dict(counts), wrong or "right", flush=True)
                for counter in (found.setdefault(kind, Counter()), total):
                    counter.update({"runs": 1, "right": not wrong, **counts})
                kept = {"seed": given.seed, "total": total, **dict(sorted(found.items()))}
                write_json(RESULTS / Path(sys.argv[0]).with_suffix(".json").name, kept)
        finally:
            kill(folder, "all")
    print(json.dumps(total))
    sys.exit(total["right"] != total["runs"])


def fresh(whole: Path, folder: Path) -> Project:
    """A copy of a project, in place of what is in the folder."""
    shutil.rmtree(folder, ignore_errors=True)
    return Project(whole).copy(folder)


def without(whole: Path, folder: Path, stage: str) -> Project:
    """A copy in which all stages but this one have run."""
    project = fresh(whole, folder)
    shutil.rmtree(folder / ".dvc/cache/runs")
    file, _, name = stage.rpartition(":")
    lock = (folder / (file or "dvc.yaml")).with_suffix(".lock")
    locked = YAML().load(lock)
    for out in locked["stages"].pop(name)["outs"]:
        path = folder / out["path"]
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    YAML().dump(locked, lock)
    return project.with_variables(RETRACE_SAVE_SECONDS="0.25", ACCELERATE_USE_CPU="1")


def cold(project: Project) -> Project:
    """The same project, with commands that are not children of the warm server, so that kills reach them all."""
    variables = project.variables or os.environ
    return replace(project, variables={name: value for name, value in variables.items() if name != warm.VARIABLE})


def failure(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The last output of a command that failed."""
    return [] if done.returncode == 0 else [f"exit code {done.returncode}: {done.stderr[-1500:]}"]


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 of all results that have no times in them, by path."""
    files = [path for name in ("data", "models", "predictions", "reports") for path in (folder / name).rglob("*")]
    left_out = [folder / name for name in TIMES]
    return {
        str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest()
        for path in sorted(files)
        if path.is_file() and path.suffix != ".lock" and not any(path.is_relative_to(out) for out in left_out)
    }


def differing(folder: Path, other: Path) -> list[str]:
    """The results that differ between two projects."""
    return changed(digests(folder), digests(other))


def changed(found: Mapping[str, str], right: Mapping[str, str]) -> list[str]:
    """The files whose digests differ, or that exist on one side only."""
    return sorted({name for name, _ in found.items() ^ right.items()})


def half_written(folder: Path) -> list[str]:
    """What was being written when something ended it."""
    return [str(path) for path in folder.rglob("*.partial")]


def findings(project: Project, checks: Collection[str]) -> list[dict[str, str]]:
    """What some checks of `retrace doctor` find that can be repaired."""
    found = json.loads(project.stage("retrace.cli.main", "doctor", "--json", code=None).stdout)["findings"]
    return [each for each in found if each["fix"] and each["check"] in checks]


def mend(project: Project, checks: Collection[str] = LOCKS) -> int:
    """Do what `retrace doctor` says, by default about locks that stop DVC; returns the number of repairs."""
    wrong = findings(project, checks)
    for found in wrong:
        command = found["fix"].partition(" && ")[0]  # then comes `dvc repro`
        print(f"{found['found']}: {command}")
        project.run("sh", "-c", command)
    return len(wrong)


def run_mended(project: Project, *command: str) -> tuple[subprocess.CompletedProcess[str], int]:
    """Run a command of DVC; once more, where a lock is cut which DVC was writing when it was killed, after mending it.

    How it ended, and how much was mended.
    """
    done = project.run(*command, code=None)
    if done.returncode == 0 or not any(words in done.stderr for words in CUT):
        return done, 0
    mended = mend(project)
    return project.run(*command, code=None), mended


def processes(folder: Path) -> Iterator[psutil.Process]:
    """What runs in a project's folder."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if Path(process.cwd()).is_relative_to(folder) and process.status() != psutil.STATUS_ZOMBIE:
                yield process


def kill(folder: Path, victim: str) -> bool:
    """Kill one process of a kind, or all; False if none runs, as the launcher before DVC has started it."""
    found = [process for process in processes(folder) if is_victim(process, victim)]
    if victim in WORDS and not is_warm(victim):
        found = found[-1:]
    for process in found:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    return bool(found)


def is_warm(victim: str) -> bool:
    """Whether the victim runs in a child of the tests' server, with that server's command line."""
    return victim == "stage" and bool(os.environ.get(warm.VARIABLE))


def is_victim(process: psutil.Process, victim: str) -> bool:
    """Whether a process is of the kind, by the module or program that Python was started with; none that has ended."""
    with suppress(psutil.Error):
        command = process.cmdline()
        if is_warm(victim):
            return not process.children() and "serve" in command
        names = [Path(part).name for part in command[:4]]
        return victim == "all" or ("python" in "".join(names[:1]) and any(of.startswith(WORDS[victim]) for of in names))
    return False


def disturb(project: Project, victim: str, moment: float, *command: str) -> tuple[bool, list[str]]:
    """Start a command and kill something in it a moment later, or everything where there is no such thing.

    Whether the command was still running, and what goes on although it should not: what is left is killed.
    """
    running = project.start(*command)
    with suppress(subprocess.TimeoutExpired):
        running.wait(moment)
    is_killed = running.poll() is None
    if is_killed and victim == "stop":
        project.stage("retrace.cli.main", "stop")
        running.communicate()
    elif is_killed and not kill(project.folder, victim):
        kill(project.folder, "all")
    end = time.monotonic() + ORPHANS
    while (orphans := list(processes(project.folder))) and time.monotonic() < end:
        time.sleep(0.1)
    kill(project.folder, "all")
    running.communicate()
    return is_killed, ["an orphan goes on"] if orphans else []


def toy(folder: Path) -> Path:
    """A toy project that has run, with enough updates to be killed in."""
    project = copy_project(folder, git=True)
    project.set_all({"finetune.methods": ["full"], "finetune.squad_methods": ["full"], "pretrain.epochs": 6})
    project.set_all({"sst2.epochs": 3, "squad.epochs": 3})
    (project.folder / "launch/two.yaml").write_text(TWO)
    project.commit("toy")
    project.run("dvc", "repro")
    return folder
