"""records.yaml: the figures that runs of a fixed budget reached, and which run is significantly better than before.

docs/records.md is made from it. An entry has the figure of each seed, so that later runs can be tested against it.
"""

import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from io import StringIO
from pathlib import Path
from statistics import mean, stdev
from typing import Annotated

from pydantic import Field, FiniteFloat
from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import LiteralScalarString

from retrace.core.errors import InputError
from retrace.core.files import read_object, rounded, write_text
from retrace.core.records import Record
from retrace.core.settings import Seed, build_file, require
from retrace.evaluation.metrics import accuracy, squad_v2
from retrace.evaluation.records import DETAILS, Details
from retrace.perplexity.measures import PERPLEXITY_DETAILS, UNITS, PerplexityReport
from retrace.report.blocks import NOTHING, Code, Table, TableCell, figure_text
from retrace.report.names import duration, p_text, shown_factor, with_unit
from retrace.report.page import fill_markdown
from retrace.results.grid import RUNS
from retrace.statistics.comparisons import ALPHA, holm
from retrace.study.published import RESULT, STUDIES, StudyResult

RECORDS, ORIGIN = Path("records.yaml"), Path("reports/origin.json")
BUDGETS = {"two-cores": ("Two cores, two hours", 2.0), "one-gpu": ("One GPU, thirty minutes", 0.5)}  # title, hours
LEAST_SEEDS = 3
DIGITS = 2  # after the point
FIGURES = {  # the data, the key of the figure, what it is
    "sst2": ("SST-2", "accuracy", accuracy.FIGURES["accuracy"]),
    "squad": ("SQuAD v1.1", "f1", squad_v2.FIGURES["f1"]),
    "perplexity": ("WikiText-2, masked", "perplexity_per_token", UNITS["perplexity_per_token"]),
}


class RunOrigin(Record):
    """origin.json: the commit of a study's run, and the seed of its pretraining."""

    commit: str | None  # None in a repository without commits
    changed: list[str]  # files with uncommitted changes when the run began
    seed: int


@dataclass(frozen=True)
class Attempt:
    """An experiment made alongside a run."""

    idea: str
    figure: str  # its result, with the unit
    kept: bool
    seeds: int | None = None  # None: not recorded


@dataclass(frozen=True)
class Entry:
    """A run."""

    commit: str
    date: str
    machine: str
    time: str  # its duration, and what that covers
    change: str  # what changed since the previous run
    command: str  # to repeat it
    figures: dict[str, dict[Seed, Annotated[FiniteFloat, Field(ge=0)]]]  # by seed, on the scales of the stages
    bytes_per_token: Annotated[FiniteFloat, Field(gt=0)]  # of the text that the perplexity is of
    tried: tuple[Attempt, ...] = ()
    note: str = ""

    def __post_init__(self) -> None:
        fits = re.fullmatch("[0-9a-f]{40}", self.commit) is not None
        require(fits, "commit", self.commit, "expected the 40 hexadecimal digits of a commit")
        require(self.figures.keys() == FIGURES.keys(), "figures", list(self.figures), f"expected {', '.join(FIGURES)}")
        for name, by_seed in self.figures.items():
            require(len(by_seed) >= LEAST_SEEDS, f"figures.{name}", by_seed, f"expected {LEAST_SEEDS} seeds or more")

    def values(self, name: str) -> list[float]:
        """A figure of each seed."""
        return [*self.figures[name].values()]

    def values_beside(self, name: str, other: "Entry") -> list[float]:
        """The same for a test against another run: perplexities per token of that run, from the loss per byte."""
        power = other.bytes_per_token / self.bytes_per_token if name == "perplexity" else 1.0
        return [value**power for value in self.values(name)]

    def text(self, name: str) -> str:
        """The mean as shown to readers, after ± the standard deviation over seeds."""
        return " ± ".join(_shown(name, statistic(self.values(name))) for statistic in (mean, stdev))

    def seeds(self, name: str) -> str:
        """Each seed's figure."""
        return ", ".join(f"{seed}: {_shown(name, value)}" for seed, value in self.figures[name].items())


def _shown(name: str, value: float) -> str:
    return figure_text(shown_factor(FIGURES[name][2]) * value, DIGITS)


@dataclass(frozen=True)
class Records:
    """All of records.yaml, the oldest run first."""

    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Standing:
    """A run's figure compared with the last record before it."""

    before: int | None  # index of that run; None for the first run
    p: float | None  # corrected; None if there is no test
    result: str
    is_record: bool  # the first run is one too


def read_records(path: Path) -> Sequence[Entry]:
    """The runs of a study; none if there is no such file.

    Raises InputError, which names the file and the key, where something in it is wrong.
    """
    return build_file(Records, path).entries if path.is_file() else ()


def standings(entries: Sequence[Entry]) -> list[dict[str, Standing]]:
    """Each run's figures compared with the last records before them.

    A run is a record in a figure if it is better by Welch's t-test (1947) over seeds, two-sided, with Holm's
    correction for the figures that are tested at once. Perplexities are compared per token of the run before.
    """
    best: dict[str, int] = {}
    found: list[dict[str, Standing]] = []
    for place, entry in enumerate(entries):
        tests = {
            name: _test(entry.values_beside(name, entries[before]), entries[before].values(name))
            for name, before in best.items()
        }
        tested = {name: p for name, p in tests.items() if p is not None}
        tests |= dict(zip(tested, holm(list(tested.values())), strict=True))
        found.append({name: _standing(name, entry, entries, best.get(name), tests.get(name)) for name in FIGURES})
        best |= {name: place for name, standing in found[-1].items() if standing.is_record}
    return found


def _standing(name: str, entry: Entry, entries: Sequence[Entry], before: int | None, p: float | None) -> Standing:
    if before is None:
        return Standing(None, None, "first", True)
    if p is None:
        return Standing(before, None, "not tested: within each run all seeds gave the same figure", False)
    is_higher = mean(entry.values_beside(name, entries[before])) > mean(entries[before].values(name))
    better = is_higher == (FIGURES[name][2].better == "higher")
    result = "no difference shown" if p >= ALPHA else "record" if better else "worse"
    return Standing(before, p, result, better and p < ALPHA)


def _test(ours: Sequence[float], theirs: Sequence[float]) -> float | None:
    """p by Welch's test; None if neither side varies."""
    from scipy.stats import ttest_ind_from_stats  # here, as it takes half a second to import

    if not (stdev(ours) or stdev(theirs)):
        return None
    sides = (statistic(side) for side in (ours, theirs) for statistic in (mean, stdev, len))
    return float(ttest_ind_from_stats(*sides, equal_var=False).pvalue)


def read_entry(study: str, change: str, runs: Mapping[str, Path]) -> Entry:
    """The entry of a study's finished runs, one for each seed.

    `runs` has the folder of each, which holds its `reports`, by its command. Raises InputError if a run is
    unfinished, small or not of a commit, if none is within the budget, or if there are fewer than three seeds.
    """
    if len(runs) < LEAST_SEEDS:
        raise InputError(f"{study}: too few different seeds: {len(runs)}; expected {LEAST_SEEDS} or more")
    found: dict[str, dict[int, float]] = {name: {} for name in FIGURES}
    commits, records, seconds, sizes = set[str](), [], [], []
    for command, folder in runs.items():
        origin = _read_origin(study, command, folder)
        commits.add(str(origin.commit))
        paths = [*(folder / RUNS / "stages").glob("*.json"), folder / RUNS / "pretrain.json"]
        for name in ("sst2", "squad"):
            method, by_seed = _scores(folder, name)
            found[name] |= by_seed
            paths += [folder / RUNS / name / method / f"{seed}.json" for seed in by_seed]
        found["perplexity"][origin.seed], bytes_per_token = _perplexity(folder)
        sizes.append(bytes_per_token)
        of_run = [read_object(path) for path in paths]
        seconds.append(sum(record["seconds"] + (record.get("evaluation_seconds") or 0) for record in of_run))
        records += of_run
    title, hours = BUDGETS[study]
    # Each seed is the same work: longer runs had fewer threads, or ran next to other programs.
    if min(seconds) > 3600 * hours:
        raise InputError(f"{study}: the fastest run took {duration(min(seconds))}; the budget is {title.lower()}")
    if len(commits) > 1:
        raise InputError(f"{study}: the runs are of several commits, {' and '.join(sorted(commits))}; run all again")
    (commit,) = commits
    times = ", ".join(map(duration, seconds))
    return Entry(
        commit=commit, date=max(record["origin"]["date"] for record in records),
        machine=", ".join(dict.fromkeys(record["origin"]["machine"] for record in records)),
        time=f"{times} of tokenizing, training with its evaluations, perplexity and scoring", change=change,
        command="\n".join([f"git checkout {commit[:12]}", *runs]), figures=rounded(found),
        bytes_per_token=round(sizes[0], 4),  # of all seeds, as they share the tokenizer
    )  # fmt: skip


def _scores(folder: Path, task: str) -> tuple[str, dict[int, float]]:
    """The only method of a task, and its figure by seed."""
    tasks = Details.read(folder / DETAILS).tasks
    methods = tasks[task].methods if task in tasks else {}
    if len(methods) != 1:
        raise InputError(f"{folder / DETAILS}: {task}: expected one method, found {', '.join(methods) or 'none'}")
    ((method, details),) = methods.items()
    return method, {int(seed): each.figures[FIGURES[task][1]] for seed, each in details.seeds.items()}


def _perplexity(folder: Path) -> tuple[float, float]:
    """The masked perplexity per token, and the bytes per token."""
    found = PerplexityReport.read(folder / PERPLEXITY_DETAILS).splits["valid"].measures.get("masked")
    if found is None or not found.perplexity_per_token or not found.bits_per_byte:
        raise InputError(f"{folder / PERPLEXITY_DETAILS}: valid.masked.perplexity_per_token: no figure")
    return found.perplexity_per_token, math.log2(found.perplexity_per_token) / found.bits_per_byte


def _read_origin(study: str, command: str, folder: Path) -> RunOrigin:
    if not (folder / RESULT).is_file() or not (folder / ORIGIN).is_file():
        raise InputError(f"{study} was not run to its end: {command}")
    if StudyResult.read(folder / RESULT).small:
        raise InputError(f"{study}: a small run cannot be a record: {command}")
    origin = RunOrigin.read(folder / ORIGIN)
    if origin.commit is None or origin.changed:
        why = f"{origin.changed[0]} was not committed" if origin.changed else "nothing was committed"
        raise InputError(f"{study}: the run belongs to no commit, as {why} when it began; commit, and {command}")
    return origin


def add_entry(path: Path, entry: Entry) -> None:
    """Append an entry to a file, and change nothing else in it.

    Raises InputError if the file has a run of this commit.
    """
    if any(each.commit == entry.commit for each in read_records(path)):
        raise InputError(f"{path}: a run of commit {entry.commit} is there already")
    yaml = YAML()
    yaml.width = sys.maxsize  # wrapped lines would end in spaces
    yaml.indent(mapping=2, sequence=4, offset=2)
    values = asdict(entry) | {"command": LiteralScalarString(entry.command)}
    stream = StringIO()
    yaml.dump([{name: value for name, value in values.items() if value not in ((), "")}], stream)
    before = path.read_text(encoding="utf-8") if path.is_file() else "entries:\n"
    write_text(path, before + ("" if before.endswith("\n") else "\n") + stream.getvalue())


def records_page(project: Path) -> str:
    """docs/records.md: the runs of each budget."""
    budgets = []
    for study, (title, _) in BUDGETS.items():
        entries = read_records(project / STUDIES / study / RECORDS)
        stood = standings(entries)
        runs = [
            (entry, [_figures_table(entry, standing), Code(entry.command, "sh"), _tried(entry)])
            for entry, standing in zip(entries, stood, strict=True)
        ]
        budgets.append((title, study, _runs_table(entries, stood), runs))
    return fill_markdown("records.md.j2", Path(__file__).parent, budgets=budgets).rstrip() + "\n"


def _title(name: str) -> str:
    data, key, figure = FIGURES[name]
    return f"{data} {with_unit(key, figure)}"


def _runs_table(entries: Sequence[Entry], stood: Sequence[Mapping[str, Standing]]) -> Table:
    """A row for each run, the last record of each figure in bold; or one that says that there is no run."""
    header = ("run", "commit", "date", *map(_title, FIGURES))
    best = {name: place for place, figures in enumerate(stood, 1) for name, each in figures.items() if each.is_record}
    rows = [
        (str(i), entry.commit[:7], entry.date, *(TableCell(entry.text(name), bold=best[name] == i) for name in FIGURES))
        for i, entry in enumerate(entries, 1)
    ]
    return Table(header, rows or [("no run yet", *[NOTHING] * (len(header) - 1))])


def _figures_table(entry: Entry, stood: Mapping[str, Standing]) -> Table:
    rows = []
    for name, standing in stood.items():
        against = NOTHING if standing.before is None else str(standing.before + 1)
        rows.append((_title(name), entry.text(name), entry.seeds(name), against, p_text(standing.p), standing.result))
    return Table(("figure", "mean", "by seed", "against run", "p", "result"), rows)


def _tried(entry: Entry) -> Table | str:
    rows = [
        (each.idea, each.figure, "not noted" if each.seeds is None else str(each.seeds), "yes" if each.kept else "no")
        for each in entry.tried
    ]
    none = "No other experiments are noted for this run."
    return Table(("tried", "what it gave", "seeds", "kept"), rows) if rows else none
