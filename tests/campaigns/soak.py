"""A project in long use: 200 rounds of edits, reverts, kills and garbage collection. Does it end as it began?

Every round edits a toy project and brings it up to date with `dvc repro`, in some after one that was killed. An edit
changes a setting or code; all are drawn from a seed beforehand, and the values in place after a round follow from the
draws alone. If DVC was killed while it wrote its lock, what `retrace doctor` suggests runs first. Then nothing may be
left to run, half-written or running, and a project that was in this state before must have the same bytes as then. In
some rounds `dvc gc`, everything that `retrace doctor` suggests, or `retrace check --cache` follows.

At the end everything is reverted. The project, and a clean clone of its first commit, which has no cache, must have the
metrics, models, predictions and reports of the start; the cache must hold what the lock files name and nothing that DVC
calls unused, and no training states may be left.

    python -m tests.campaigns.soak [--rounds 200] [--seed 1]

The rounds of a seed are always the same, however many are made.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from ruamel.yaml import YAML

from tests.campaigns import trials
from tests.toy import Project

LOCKFILES = ("dvc.lock", "data/dvc.lock")
RAN, CACHED = re.compile(r"^Running stage '(.*)'", re.M), re.compile(r"^Stage '(.*)' is cached", re.M)
UNUSED = "No unused 'repo' cache to remove."  # as `dvc gc` says it
OF_DOCTOR = (*trials.LOCKS, "leftovers", "stale results", "saved states", "cache")  # checks
ROOM = 64 * 1024  # bytes by which locks and DVC's own notes may have grown
FOLDERS = {".retrace": ".retrace", "cache": ".dvc/cache/files", "run cache": ".dvc/cache/runs", "tmp": ".dvc/tmp"}

State = dict[str, Any]  # what differs from the start, by name


class Edit(NamedTuple):
    """Something with a few possible values; it has the first at the start."""

    weight: int  # how often it is edited
    seconds: float  # of the stages that it reruns
    values: tuple[Any, ...]


class Kill(NamedTuple):
    """What is killed in a round, or asked to stop, and when."""

    victim: str  # stage, dvc, all, or stop for `retrace stop`
    moment: float  # seconds after `dvc repro` was started
    abandoned: bool  # the next round comes without the repro that would end this one


class Round(NamedTuple):
    """One of them."""

    number: int
    state: State
    kill: Kill | None
    chores: tuple[str, ...]  # after it


EDITS: Mapping[str, Edit] = {
    "review.tolerance.points": Edit(13, 2, (5, 4)),
    "metrics.bootstrap_samples": Edit(4, 5, (1000, 500)),
    "metrics.classification": Edit(
        6, 4, (["accuracy", "f1", "roc_auc"], ["accuracy", "f1", "matthews"], ["f1", "accuracy"])
    ),
    "metrics.every_epoch": Edit(4, 4, (["accuracy", "squad_v2"], ["accuracy", "f1", "squad_v2"])),
    "perplexity.seed": Edit(4, 5, (0, 1)),
    "perplexity.mask_rate": Edit(4, 5, (0.15, 0.3)),
    "sst2.lr": Edit(6, 5, (0.0005, 0.001)),
    "sst2.epochs": Edit(4, 6, (3, 2)),
    "sst2.max_length": Edit(3, 5, (48, 40)),
    "squad.lr": Edit(6, 6, (0.00035, 0.001)),
    "squad.epochs": Edit(3, 6, (2, 1)),
    "squad.max_answer_length": Edit(4, 6, (30, 10)),
    "methods.frozen.lr_factor": Edit(3, 5, (5, 3)),
    "finetune.methods": Edit(8, 6, (["full"], ["full", "frozen"], ["frozen"], ["full", "scratch"])),
    "finetune.squad_methods": Edit(6, 7, (["full"], ["full", "frozen"], [])),
    "finetune.seeds": Edit(3, 12, ([1], [1, 2], [2])),
    "lr": Edit(2, 14, (0.001, 0.002)),
    "pretrain.epochs": Edit(2, 14, (4, 3)),
    "pretrain.mask_rate": Edit(2, 14, (0.3, 0.2)),
    "model.layers": Edit(1, 14, (2, 1)),
    "family": Edit(1, 14, ("modernbert", "bert")),
    "tokenizer.vocab_size": Edit(1, 18, (400, 390)),
    "sample.reviews": Edit(1, 22, (60, 56)),
    "code of a metric": Edit(6, 4, (False, True)),
    "code of the page": Edit(8, 2, (False, True)),
    "code of tasks": Edit(3, 6, (False, True)),
    "code of a method": Edit(2, 6, (False, True)),
}
CODE: Mapping[str, tuple[str, str, str]] = {  # the file, and text in it before and after
    "code of a metric": ("retrace/evaluation/metrics/accuracy.py", "np.equal(outcome", "np.not_equal(outcome"),
    "code of the page": ("retrace/report/page.html.j2", ">To the report<", ">To the figures<"),
    "code of tasks": ("retrace/tasks/classification.py", '"""Logits', '"""The logits'),  # the same bytes
    "code of a method": ("retrace/methods/full.py", '"""', '"""Edited. '),
}
KINDS = {"edit": 60, "two edits": 8, "revert": 20, "start": 7, "nothing": 5}
BACK = 10  # rounds that a revert may go back
VICTIMS = {"stage": 10, "all": 8, "stop": 5, "dvc": 3}  # the last is slow: DVC is not started from the warm server
STARTING = 6.0  # seconds longer that it takes with it
KILLED, ABANDONED = 0.4, 0.3  # share of rounds in which something is killed, and share of those that are given up
CHORES = {"gc": 0.12, "gc of branches": 0.05, "killed gc": 0.05, "doctor": 0.25, "check": 0.06}  # how often


class Soak:
    """A project, what is edited in it, and its bytes in every state so far."""

    def __init__(self, project: Project, site: Path) -> None:
        self.project, self._site = project, site
        self.state: State = {}
        self._seen: dict[str, dict[str, str]] = {}
        self.counts = Counter[str]()  # of the round

    def turn(self, todo: Round) -> tuple[list[str], list[str]]:
        """One round: the stages that ran in it, and what is wrong after it."""
        edited, wrong = set_state(self.project, self.state, todo.state), list[str]()
        self.state, self.counts = todo.state, Counter(edited=bool(edited))
        if todo.kill:
            victim, moment, is_abandoned = todo.kill
            project = trials.cold(self.project) if victim == "dvc" else self.project
            is_killed, wrong = trials.disturb(project, victim, moment, "dvc", "repro")
            states = any(project.folder.glob(".retrace/states/*/0*"))
            self.counts += Counter({victim if victim == "stop" else "killed": is_killed, "states": states})
            if is_abandoned:
                self.counts += Counter(abandoned=1)
                return [], wrong
        ran, failed = self.settle()
        wrong += failed or self._wrong()
        for chore in () if failed else todo.chores:
            wrong += [f"{chore}: {text}" for text in self._do(chore, 0.1 * (todo.number % 15))]
        return ran, wrong

    def settle(self) -> tuple[list[str], list[str]]:
        """Bring the project up to date: the stages that ran, and what is wrong."""
        done, mended = trials.run_mended(self.project, "dvc", "repro")
        ran, cached = RAN.findall(done.stdout), CACHED.findall(done.stdout)
        self.counts += Counter({"stages run": len(ran), "stages from the cache": len(cached), "mended": mended})
        return ran, trials.failure(done)

    def _wrong(self) -> list[str]:
        """What is wrong with a project that is up to date."""
        again = RAN.findall(self.project.run("dvc", "repro").stdout)
        wrong = [f"{stage} ran once more" for stage in again] + left(self.project)
        state, found = json.dumps(self.state, sort_keys=True), self.digests()
        if state in self._seen:
            differing = trials.changed(found, self._seen[state])
            self.counts += Counter({"compared": 1, "same": not differing})
            wrong += [f"{name} is another than before" for name in differing]
        self._seen[state] = found
        return wrong

    def digests(self) -> dict[str, str]:
        """SHA-256 of the results, but for cells that are no longer listed: they stay until doctor has them removed."""
        outs = [Path(out["path"]) for out in self._outs()]
        found = {Path(name): digest for name, digest in trials.digests(self.project.folder).items()}
        stale = {path for path in found if path.parts[0] in ("models", "predictions")}
        stale -= {path for path in stale if any(path.is_relative_to(out) for out in outs)}
        return {str(path): digest for path, digest in found.items() if path not in stale}

    def _do(self, chore: str, moment: float) -> list[str]:
        """Clear something away; returns what is wrong afterwards."""
        self.counts += Counter({chore: 1})
        if chore == "doctor":
            self.counts += Counter(mends=trials.mend(self.project, OF_DOCTOR))
            return self.findings()
        if chore == "check":
            said = self.project.stage("retrace.cli.main", "check", "--cache").stdout
            return [] if " 0 damaged" in said else [said]
        wrong = list[str]()
        if chore == "killed gc":
            _, wrong = trials.disturb(self.project, "all", moment, "dvc", "gc", "-w", "-f")
        return wrong + self.collect("-a" if chore == "gc of branches" else "-w")

    def collect(self, scope: str) -> list[str]:
        """Have DVC collect garbage; returns what it, or its lock files, call unused afterwards."""
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
        """The digests that the lock files name, and those in the lists of files among them."""
        cached, used = self.cached(), {out["md5"] for out in self._outs()}
        lists = [json.loads(cached[name].read_text()) for name in used if name.endswith(".dir") and name in cached]
        return used | {each["md5"] for files in lists for each in files}

    def _outs(self) -> list[dict[str, Any]]:
        """What is cached of the stages there are now: lock files keep entries of cells that were taken off the list."""
        grid, found = self.project.params()["finetune"], list[dict[str, Any]]()
        listed = {"sst2": grid["methods"], "squad": grid["squad_methods"]}
        cells = {f"{task}-{method}-{seed}" for task in listed for method in listed[task] for seed in grid["seeds"]}
        for file in LOCKFILES:
            stages = YAML(typ="safe").load(self.project.folder / file)["stages"]
            there = [stage for name, stage in stages.items() if "@" not in name or name.partition("@")[2] in cells]
            found += [out for stage in there for out in stage["outs"] if out["path"] not in trials.UNCACHED]
        return found

    def sizes(self) -> dict[str, int]:
        """Bytes in the folders that programs keep for their own use."""
        folders = {name: self.project.folder / path for name, path in FOLDERS.items()} | {"site": self._site}
        files = {name: [path for path in root.rglob("*") if not path.is_symlink()] for name, root in folders.items()}
        return {name: sum(path.stat().st_size for path in paths if path.is_file()) for name, paths in files.items()}


def drawn(count: int, draw: Random) -> Iterator[Round]:
    """This many rounds."""
    states = list[State]([{}])
    for number in range(1, count + 1):
        states.append(_after(states, draw))
        before, state = states[-2:]
        seconds = max((EDITS[name].seconds for name in _differing(before, state)), default=2.0)
        kill = None
        if draw.random() < KILLED:
            victim = _one(VICTIMS, draw)
            moment = draw.uniform(0.2, seconds + STARTING * (victim == "dvc"))
            kill = Kill(victim, round(moment, 2), draw.random() < ABANDONED)
        chores = tuple(name for name, share in CHORES.items() if draw.random() < share)
        yield Round(number, state, kill, () if kill and kill.abandoned else chores)


def set_state(project: Project, before: State, after: State) -> list[str]:
    """Edit what differs between two states; returns its names."""
    names = _differing(before, after)
    values = {name: after.get(name, EDITS[name].values[0]) for name in names}
    project.set_all({name: value for name, value in values.items() if name not in CODE})
    for name in set(names) & set(CODE):
        file, *texts = CODE[name]
        old, new = texts if values[name] else reversed(texts)
        path = project.folder / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))
    return names


def _after(states: list[State], draw: Random) -> State:
    """The state after the next round."""
    kind = _one(KINDS, draw)
    if kind == "start":
        return {}
    if kind == "revert":
        return draw.choice(states[-BACK:])
    state = dict(states[-1])
    for _ in range({"edit": 1, "two edits": 2, "nothing": 0}[kind]):
        name = _one({name: edit.weight for name, edit in EDITS.items()}, draw)
        first, *_ = EDITS[name].values
        old = state.pop(name, first)
        value = draw.choice([value for value in EDITS[name].values if value != old])
        state |= {} if value == first else {name: value}
    return state


def _differing(before: State, after: State) -> list[str]:
    return [name for name in EDITS if before.get(name) != after.get(name)]


def _one(weights: Mapping[str, int], draw: Random) -> str:
    return draw.choices([*weights], [*weights.values()])[0]


def left(project: Project) -> list[str]:
    """Processes that still run, and what is half-written."""
    running = [f"process {process.pid} is left" for process in trials.processes(project.folder)]
    return running + trials.half_written(project.folder)


def end(soak: Soak, digests: dict[str, str], sizes: dict[str, int]) -> dict[str, list[str]]:
    """Revert everything, clear everything away and clone: what is wrong with each compared with the start.

    The start had these results, and this many bytes in the folders of programs.
    """
    project, clone = soak.project, Project(soak.project.folder.with_name("clone"))
    set_state(project, soak.state, {})
    soak.state = {}
    wrong = {"taken back": soak.settle()[1]}
    trials.mend(project, OF_DOCTOR)
    wrong["taken back"] += _others(project, soak.digests(), digests)
    wrong["doctor"] = soak.findings() + [str(path) for path in project.folder.glob(".retrace/states/*/")]
    wrong["unused"] = soak.collect("-w")
    wrong["missing"] = sorted(soak.used() - soak.cached().keys())
    wrong["left"] = left(project)
    last = soak.sizes()
    wrong["grown"] = [name for name in (".retrace", "tmp", "cache") if last[name] > sizes[name] + ROOM]
    project.run("git", "clone", "-q", str(project.folder), str(clone.folder))
    clone.run("dvc", "repro")
    return {**wrong, "clone": _others(clone, trials.digests(clone.folder), digests)}


def _others(project: Project, found: dict[str, str], start: dict[str, str]) -> list[str]:
    """Results that differ from those at the start, and what git calls changed.

    But for the lock files, which have the digests of files with times in them.
    """
    changed = {line[3:] for line in project.run("git", "status", "--porcelain").stdout.splitlines()} - {*LOCKFILES}
    others = [f"{name} is another than at the start" for name in trials.changed(found, start)]
    return others + [f"{name} is changed" for name in changed]


def campaign(whole: Path, folder: Path, count: int, draw: Random) -> Iterator[trials.Outcome]:
    """Rounds of a project that is committed in its state after a run, and the final checks."""
    os.environ["DVC_SITE_CACHE_DIR"] = str(folder / "site")  # what DVC keeps outside of projects
    project = trials.fresh(whole, folder / "project")
    project.set_all({name: edit.values[0] for name, edit in EDITS.items() if name not in CODE})
    project.set("model.rope_theta", None)  # which not every family has
    soak = Soak(project, folder / "site")
    assert soak.settle()[1] == []
    project.commit("run")
    assert soak.collect("-w") == []
    start = soak.digests(), soak.sizes()
    for todo in drawn(count, draw):
        print(todo, flush=True)
        _, wrong = soak.turn(todo)
        yield trials.Outcome("round", wrong, soak.counts)
    for kind, wrong in end(soak, *start).items():
        yield trials.Outcome(f"end: {kind}", wrong)
    yield trials.Outcome("bytes", [], soak.sizes())


if __name__ == "__main__":
    os.environ |= {"RETRACE_SAVE_SECONDS": "0.1", "RETRACE_THREADS": "1", "OMP_NUM_THREADS": "1"}
    trials.main(campaign, __doc__, 200, "rounds")
