"""A project lived in: 200 rounds of edits, reverts, kills and garbage collection. Does it end as it began?

Every round edits a toy project (tests/campaigns/rounds.py) and brings it up to date with `dvc repro`, in some after one
that was killed. Where DVC was killed while it wrote its lock, what `retrace doctor` says comes first. Then nothing may
be left to run, half-written or running, and a project that was in this state before must have the same bytes as then.
In some rounds `dvc gc`, `retrace doctor` with all that it says, or `retrace check --cache` follow.

At the end everything is taken back. The project, and a clean clone of its first commit, which has no cache, must have
the metrics, models, predictions and reports of the start; the cache holds what the lock files name and nothing that DVC
calls unused; no states of training are left.

    python -m tests.campaigns.soak [--rounds 200] [--seed 1] [--minutes 60] [--only 17]

The rounds of a seed are always the same, however many are made. `--only` makes one of them again, from the state of the
one before it.
"""

import argparse
import json
import math
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from retrace.core.files import write_json
from tests.campaigns import trials
from tests.campaigns.rounds import CODE, EDITS, Kill, Round, State, drawn, set_state
from tests.toy import Project, copy_project

LOCKFILES = ("dvc.lock", "data/dvc.lock")
RAN, CACHED = re.compile(r"^Running stage '(.*)'", re.M), re.compile(r"^Stage '(.*)' is cached", re.M)
UNUSED = "No unused 'repo' cache to remove."  # as `dvc gc` says it
OF_DOCTOR = (*trials.LOCKS, "leftovers", "stale results", "saved states", "cache")  # checks
ROOM = 64 * 1024  # bytes by which locks and DVC's own notes may have grown


class Soak:
    """A project, what is edited in it, and the bytes that it had in every state so far."""

    def __init__(self, project: Project, site: Path) -> None:
        self.project, self._site = project, site
        self.state: State = {}
        self._number = 0  # of the round
        self._seen: dict[str, dict[str, str]] = {}
        self.counts = Counter[str]()

    def turn(self, todo: Round) -> tuple[list[str], list[str]]:
        """One round: the stages that ran in it, and what is wrong after it."""
        edited = set_state(self.project, self.state, todo.state)
        self.state, self._number = todo.state, todo.number
        self.counts += Counter(rounds=1, edited=bool(edited))
        wrong = [] if todo.kill is None else self._disturb(todo.kill)
        if todo.kill is not None and todo.kill.abandoned:
            self.counts += Counter(abandoned=1)
            return [], wrong
        ran, failed = self.settle()
        wrong += failed or self._wrong()
        for chore in () if failed else todo.chores:
            wrong += [f"{chore}: {text}" for text in self._do(chore)]
        return ran, wrong

    def settle(self) -> tuple[list[str], list[str]]:
        """Bring the project up to date: the stages that ran, and what is wrong."""
        done, mended = trials.run_mended(self.project, "dvc", "repro")
        ran, cached = RAN.findall(done.stdout), CACHED.findall(done.stdout)
        self.counts += Counter({"stages run": len(ran), "stages from the cache": len(cached), "mended": mended})
        return ran, trials.failure(done)

    def _disturb(self, how: Kill) -> list[str]:
        """Kill a repro; what goes on although it should not."""
        project = trials.cold(self.project) if how.victim == "dvc" else self.project
        running = project.start("dvc", "repro")
        is_killed = trials.is_still_running(running, how.moment)
        if is_killed and how.victim == "stop":
            project.stage("retrace.cli.main", "stop")
        elif is_killed and not trials.kill(project.folder, how.victim):
            trials.kill(project.folder, "all")
        if how.victim == "stop":
            running.communicate()
        ended = trials.all_ended(project.folder)
        running.communicate()
        states = any(project.folder.glob(".retrace/states/*/0*"))
        self.counts += Counter({how.victim if how.victim == "stop" else "killed": is_killed, "states": states})
        return [] if ended else ["an orphan goes on"]

    def _wrong(self) -> list[str]:
        """What is wrong with a project that is up to date."""
        again = RAN.findall(self.project.run("dvc", "repro").stdout)
        wrong = [f"{stage} ran once more" for stage in again]
        wrong += left(self.project)
        state, found = json.dumps(self.state, sort_keys=True), self.digests()
        if state in self._seen:
            differing = trials.changed(found, self._seen[state])
            self.counts += Counter({"compared": 1, "same": not differing})
            wrong += [f"{name} is another than before" for name in differing]
        self._seen[state] = found
        return wrong

    def digests(self) -> dict[str, str]:
        """SHA-256 of the results, but for cells that are no longer listed: they stay until doctor has them removed."""
        found = trials.digests(self.project.folder)
        outs = [Path(out["path"]) for out in self._outs()]
        cells = [Path(name) for name in found if name.startswith(("models/", "predictions/"))]
        stale = {str(cell) for cell in cells if not any(cell.is_relative_to(out) for out in outs)}
        return {name: digest for name, digest in found.items() if name not in stale}

    def _do(self, chore: str) -> list[str]:
        """Clear something away; what is wrong after it."""
        self.counts += Counter({chore: 1})
        if chore == "doctor":
            self.counts += Counter(mends=trials.mend(self.project, OF_DOCTOR))
            return self.findings()
        if chore == "check":
            said = self.project.stage("retrace.cli.main", "check", "--cache").stdout
            return [] if " 0 damaged" in said else [said]
        if chore == "killed gc":
            running = self.project.start("dvc", "gc", "-w", "-f")
            trials.is_still_running(running, 0.1 * (self._number % 15))
            trials.kill(self.project.folder, "all")
            trials.all_ended(self.project.folder)
            running.communicate()
        return self.collect("-a" if chore == "gc of branches" else "-w")

    def collect(self, scope: str) -> list[str]:
        """Have DVC collect garbage; what it, or its lock files, call unused after it."""
        done, mended = trials.run_mended(self.project, "dvc", "gc", scope, "-f")
        self.counts += Counter(mended=mended)
        dry = self.project.run("dvc", "gc", scope, "--dry", code=None)
        wrong = [] if done.returncode == 0 and UNUSED in dry.stdout else [done.stderr + dry.stdout + dry.stderr]
        return wrong + [f"{path} is unused" for path in sorted(self.cached().keys() - self.used()) if scope == "-w"]

    def findings(self) -> list[str]:
        """What doctor finds wrong."""
        return [f"{each['check']}: {each['found']}" for each in trials.findings(self.project, OF_DOCTOR)]

    def cached(self) -> dict[str, Path]:
        """The files of DVC's cache, by their digests."""
        files = (self.project.folder / ".dvc/cache/files/md5").rglob("*")
        return {path.parent.name + path.name: path for path in files if path.is_file()}

    def used(self) -> set[str]:
        """The digests that the lock files name, and those that lists of files among them do."""
        cached, used = self.cached(), {out["md5"] for out in self._outs()}
        lists = [json.loads(cached[name].read_text()) for name in used if name.endswith(".dir") and name in cached]
        return used | {each["md5"] for files in lists for each in files}

    def _outs(self) -> list[dict[str, Any]]:
        """What is cached of the stages there are now: lock files keep entries of cells that were taken off the list."""
        grid = self.project.params()["finetune"]
        cells = {f"finetune-sst2@sst2-{method}-{seed}" for method in grid["methods"] for seed in grid["seeds"]}
        cells |= {f"finetune-squad@squad-{method}-{seed}" for method in grid["squad_methods"] for seed in grid["seeds"]}
        found = []
        for file in LOCKFILES:
            stages = YAML(typ="safe").load(self.project.folder / file)["stages"]
            found += [stage for name, stage in stages.items() if "@" not in name or name in cells]
        return [out for stage in found for out in stage["outs"] if out["path"] not in trials.UNCACHED]

    def sizes(self) -> dict[str, int]:
        """Bytes in the folders that programs keep for themselves."""
        folders = {".retrace": ".retrace", "cache": ".dvc/cache/files", "runs": ".dvc/cache/runs", "tmp": ".dvc/tmp"}
        found = {name: _bytes(self.project.folder / path) for name, path in folders.items()}
        return {**found, "site": _bytes(self._site)}


def begin(folder: Path) -> Soak:
    """A toy project that has run and is committed."""
    project = copy_project(folder, git=True)
    project.set_all({name: edit.values[0] for name, edit in EDITS.items() if name not in CODE})
    project.set("model.rope_theta", None)  # which not every family has
    soak = Soak(project, folder.with_name("site"))
    _, wrong = soak.settle()
    assert wrong == []
    project.commit("run")
    assert soak.collect("-w") == []
    return soak


def end(soak: Soak, digests: dict[str, str], sizes: dict[str, int]) -> dict[str, list[str]]:
    """Take all back, clear all away and clone: what is wrong with each beside the start.

    That had these results, and so many bytes in the folders of programs.
    """
    project = soak.project
    set_state(project, soak.state, {})
    soak.state = {}
    wrong = {"taken back": soak.settle()[1]}
    trials.mend(project, OF_DOCTOR)
    wrong["taken back"] += _others(soak.digests(), digests) + _uncommitted(project)
    wrong["doctor"] = soak.findings() + [str(path) for path in project.folder.glob(".retrace/states/*/")]
    wrong["unused"] = soak.collect("-w")
    wrong["missing"] = sorted(soak.used() - soak.cached().keys())
    wrong["left"] = left(project)
    last = soak.sizes()
    wrong["grown"] = [name for name in (".retrace", "tmp", "cache") if last[name] > sizes[name] + ROOM]
    clone = Project(project.folder.with_name("clone"))
    project.run("git", "clone", "-q", str(project.folder), str(clone.folder))
    clone.run("dvc", "repro")
    wrong["clone"] = _others(trials.digests(clone.folder), digests) + _uncommitted(clone)
    return wrong


def left(project: Project) -> list[str]:
    """Processes that still run, and what is half-written."""
    running = [f"process {process.pid} is left" for process in trials.processes(project.folder)]
    return running + trials.half_written(project.folder)


def _others(found: dict[str, str], start: dict[str, str]) -> list[str]:
    return [f"{name} is another than at the start" for name in trials.changed(found, start)]


def _uncommitted(project: Project) -> list[str]:
    """What git calls changed, but for the lock files, which have the digests of files with times in them."""
    changed = [line[3:] for line in project.run("git", "status", "--porcelain").stdout.splitlines()]
    return [f"{name} is changed" for name in changed if name not in LOCKFILES]


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def live(soak: Soak, plan: Sequence[Round], minutes: float, result: dict[str, Any], is_kept: bool) -> None:
    """Make the rounds that begin in so many minutes; what each finds is printed, and kept with those before it."""
    began = time.monotonic()
    sizes = soak.sizes()
    result |= {"wrong": {}, "bytes": {"start": sizes, "largest": dict(sizes)}}
    for todo in plan:
        since = time.monotonic()
        if since - began > 60 * minutes:
            break
        ran, wrong = soak.turn(todo)
        now, seconds = soak.sizes(), time.monotonic() - since
        largest = {name: max(size, result["bytes"]["largest"][name]) for name, size in now.items()}
        result["bytes"] |= {"largest": largest, "last": now}
        result["wrong"] |= {str(todo.number): wrong} if wrong else {}
        result |= {"done": dict(soak.counts), "seconds": round(time.monotonic() - began)}
        said = {**asdict(todo), "ran": ran, "seconds": round(seconds, 1), "bytes": now, "wrong": wrong}
        print(json.dumps(said), flush=True)
        if is_kept:
            write_json(trials.RESULTS / "soak.json", result)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=math.inf, help="after which no further round is begun")
    parser.add_argument("--only", type=int, help="the number of a round")
    given = parser.parse_args()
    os.environ |= {"RETRACE_SAVE_SECONDS": "0.1", "RETRACE_THREADS": "1", "OMP_NUM_THREADS": "1"}
    plan, is_kept = drawn(given.rounds, given.seed), given.only is None
    result: dict[str, Any] = {"seed": given.seed, "rounds": given.rounds}
    with trials.campaign_folder() as folder:
        os.environ["DVC_SITE_CACHE_DIR"] = str(folder / "site")  # what DVC keeps outside of projects
        soak = begin(folder / "project")
        start = soak.digests(), soak.sizes()
        if given.only is not None:
            before = Round(given.only - 1, plan[given.only - 2].state if given.only > 1 else {}, None, ())
            plan = [before, plan[given.only - 1]]
        live(soak, plan, given.minutes, result, is_kept)
        result["end"] = end(soak, *start)
        result["bytes"]["end"] = soak.sizes()
    if is_kept:
        write_json(trials.RESULTS / "soak.json", result)
    print(json.dumps(result))
    sys.exit(bool(result["wrong"]) or any(result["end"].values()))


if __name__ == "__main__":
    main()
