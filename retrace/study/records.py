"""records.yaml: what a fixed budget reached, run by run, and which run is better than those before it beyond chance.

docs/records.md is made from it. An entry has the figures of its seeds, so that the next one can be tested against it;
of early runs only means were kept, and then nothing is tested.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from io import StringIO
from pathlib import Path
from statistics import mean, stdev
from typing import Annotated

import numpy as np
from pydantic import Field, FiniteFloat
from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import LiteralScalarString

from retrace.core.errors import InputError
from retrace.core.files import read_object, rounded, write_text
from retrace.core.records import Record
from retrace.core.settings import Seed, build_file, require
from retrace.evaluation.metrics import accuracy, squad_v2
from retrace.evaluation.records import DETAILS, Details
from retrace.perplexity.measures import DETAILS as PERPLEXITY
from retrace.perplexity.measures import UNITS, PerplexityReport
from retrace.report.blocks import NOTHING, Code, Table, figure_text
from retrace.report.names import figure_name, shown_factor
from retrace.report.page import fill_markdown
from retrace.report.runs import duration
from retrace.statistics.comparisons import ALPHA, difference, holm
from retrace.statistics.intervals import Scored
from retrace.statistics.scales import SHARES
from retrace.study.published import STUDIES
from retrace.study.result import RESULT, StudyResult

RECORDS, ORIGIN = Path("records.yaml"), Path("reports/origin.json")
BUDGETS = {"two-cores": ("Two cores, two hours", 2.0), "one-gpu": ("One GPU, thirty minutes", 0.5)}  # title, hours
LEAST_SEEDS = 3
DIGITS = 2  # after the point, where a run has as many
SMALLEST_P = 1e-4  # smaller ones are printed as a bound
FIGURES = {  # the data, the key of the figure, what it is
    "sst2": ("SST-2", "accuracy", accuracy.FIGURES["accuracy"]),
    "squad": ("SQuAD v1.1", "f1", squad_v2.FIGURES["f1"]),
    "perplexity": ("WikiText-2, masked", "perplexity_per_token", UNITS["perplexity_per_token"]),
}


class RunOrigin(Record):
    """origin.json: which commit a run of a study is of, and from which seed it pretrains."""

    commit: str | None  # None before the first one
    changed: list[str]  # files that were not as in the commit when the run began
    seed: int


@dataclass(frozen=True)
class Summary:
    """A figure of which the seeds' own values were not kept."""

    mean: FiniteFloat
    std: FiniteFloat
    seeds: Annotated[int, Field(ge=2)]


@dataclass(frozen=True)
class Attempt:
    """What was tried beside a run."""

    idea: str
    figure: str  # what it gave, with its unit
    kept: bool
    seeds: int | None = None  # None where it was not noted


@dataclass(frozen=True)
class Entry:
    """A run."""

    commit: str
    date: str
    machine: str
    time: str  # how long it took, and what that covers
    change: str  # what it did otherwise than the run before
    command: str  # that makes it again
    figures: dict[str, dict[Seed, FiniteFloat] | Summary]  # by seed, as the stages have them
    tried: tuple[Attempt, ...] = ()
    note: str = ""

    def __post_init__(self) -> None:
        fits = re.fullmatch("[0-9a-f]{40}", self.commit) is not None
        require(fits, "commit", self.commit, "expected the 40 hexadecimal digits of a commit")
        require(self.figures.keys() == FIGURES.keys(), "figures", list(self.figures), f"expected {', '.join(FIGURES)}")
        require(all(self.figures.values()), "figures", "{}", "expected each with its seeds")

    def mean(self, name: str) -> float:
        """Of the seeds."""
        found = self.figures[name]
        return found.mean if isinstance(found, Summary) else mean(found.values())

    def text(self, name: str) -> str:
        """The mean as readers see it, after ± the standard deviation over seeds."""
        found, factor = self.figures[name], shown_factor(FIGURES[name][2])
        std = found.std if isinstance(found, Summary) else stdev(found.values()) if len(found) > 1 else None
        digits = self.digits(name)
        return figure_text(factor * self.mean(name), digits) + (
            "" if std is None else f" ± {figure_text(factor * std, digits)}"
        )

    def digits(self, name: str) -> int:
        """How many digits after the point were kept, of as many as are shown."""
        found, factor = self.figures[name], shown_factor(FIGURES[name][2])
        values = [self.mean(name), *([] if isinstance(found, Summary) else found.values())]
        return max(len(f"{factor * value:.{DIGITS}f}".rstrip("0").partition(".")[2]) for value in values)

    def seeds(self, name: str) -> str:
        """Each seed's figure."""
        found, (*_, figure) = self.figures[name], FIGURES[name]
        if isinstance(found, Summary):
            return f"{found.seeds} seeds, whose figures were not recorded"
        digits, factor = self.digits(name), shown_factor(figure)
        return ", ".join(f"{seed}: {figure_text(factor * value, digits)}" for seed, value in found.items())


@dataclass(frozen=True)
class Records:
    """All of records.yaml, the oldest run first."""

    entries: tuple[Entry, ...]

    def __post_init__(self) -> None:
        commits = [entry.commit for entry in self.entries]
        require(len(set(commits)) == len(commits), "entries", commits, "expected each commit once")


@dataclass(frozen=True)
class Standing:
    """A figure of a run beside the best one before."""

    before: int | None  # that run's place; None of the first run
    p: float | None  # of no difference, corrected; None where it cannot be tested
    said: str
    is_best: bool  # whether it takes the other's place


def read_records(path: Path) -> Sequence[Entry]:
    """The runs of a study; none where there is no such file.

    Raises InputError, which names the file and the key, where something in it is wrong.
    """
    return build_file(Records, path).entries if path.is_file() else ()


def standings(entries: Sequence[Entry]) -> list[dict[str, Standing]]:
    """Each run's figures beside the best ones before them.

    A run is a record in a figure where it is better by Welch's t-test (1947) over seeds, two-sided, with Holm's
    correction for the figures that are tested at once. Where the seeds do not allow a test, the better mean takes the
    place of the best so far and is no record.
    """
    best: dict[str, int] = {}
    found: list[dict[str, Standing]] = []
    for place, entry in enumerate(entries):
        tests = {name: _test(name, entry, entries[before], before) for name, before in best.items()}
        tested = {name: p for name, p in tests.items() if isinstance(p, float)}
        corrected = dict(zip(tested, holm(list(tested.values())), strict=True))
        of: dict[str, Standing] = {}
        for name in entry.figures:
            before = best.get(name)
            rival = None if before is None else entries[before]
            of[name] = _standing(name, entry, rival, before, corrected.get(name), tests.get(name))
            if of[name].is_best:
                best[name] = place
        found.append(of)
    return found


def _standing(
    name: str, entry: Entry, rival: Entry | None, before: int | None, p: float | None, test: float | str | None
) -> Standing:
    if rival is None:
        return Standing(before, None, "first", True)
    ours, theirs = entry.mean(name), rival.mean(name)
    better = ours != theirs and (ours > theirs) == (FIGURES[name][2].better == "higher")
    if p is None:
        return Standing(before, None, f"{'better' if better else 'not better'}, not tested: {test}", better)
    if p >= ALPHA:
        return Standing(before, p, "no difference shown", False)
    return Standing(before, p, "record" if better else "worse", better)


def _test(name: str, entry: Entry, rival: Entry, before: int) -> float | str:
    """p of no difference, or why it cannot be tested."""
    sides = []
    for run, who in ((entry, "this run"), (rival, f"run {before + 1}")):
        values = run.figures[name]
        if isinstance(values, Summary):
            return f"the seeds’ figures of {who} were not recorded"
        if len(values) < 2:
            return f"{who} has one seed"
        sides.append(list(values.values()))
    if all(len(set(side)) == 1 for side in sides):
        return "the seeds of both runs do not differ"
    # Without resamples of examples: the difference's only source of chance is the seeds.
    ours, theirs = ([Scored({name: value}, {name: np.zeros(2)}) for value in side] for side in sides)
    return difference(name, ours, theirs).p


def read_entry(study: str, change: str, runs: Mapping[str, Path]) -> Entry:
    """The entry of finished runs of a study: one with several seeds of fine-tuning, or several from a seed each.

    `runs` are the folders that have their `reports`, by the command that makes each.

    Raises InputError where a run is not finished, small, of no commit or over the budget, or where there are fewer than
    three seeds.
    """
    found: dict[str, dict[int, float]] = {name: {} for name in FIGURES}
    commits, dates, machines, seconds = set[str](), [], [], []
    for command, folder in runs.items():
        origin = _read_origin(study, command, folder)
        commits.add(str(origin.commit))
        parts = [*(folder / "reports/runs/stages").glob("*.json"), folder / "reports/runs/pretrain.json"]
        tasks = Details.read(folder / DETAILS).tasks
        for name in ("sst2", "squad"):
            methods = tasks[name].methods if name in tasks else {}
            if len(methods) != 1:
                there = ", ".join(methods) or "none"
                raise InputError(f"{folder / DETAILS}: {name}: expected one method, found {there}")
            for method, of in methods.items():
                found[name] |= {int(seed): each.figures[FIGURES[name][1]] for seed, each in of.seeds.items()}
                parts += [folder / f"reports/runs/{name}/{method}/{seed}.json" for seed in of.seeds]
        measured = PerplexityReport.read(folder / PERPLEXITY).splits["valid"].measures
        perplexity = measured["masked"].perplexity_per_token if "masked" in measured else None
        if perplexity is None:
            raise InputError(f"{folder / PERPLEXITY}: valid.masked.perplexity_per_token: no figure")
        found["perplexity"][origin.seed] = perplexity
        records = [read_object(part) for part in parts]
        seconds.append(sum(record["seconds"] for record in records))
        dates += [record["origin"]["date"] for record in records]
        machines += [record["origin"]["machine"] for record in records]
    title, hours = BUDGETS[study]
    if max(seconds) > 3600 * hours:
        raise InputError(f"{study}: the run took {duration(max(seconds))}; the budget is {title.lower()}")
    if len(commits) > 1:
        raise InputError(f"{study}: the runs are of several commits, {' and '.join(sorted(commits))}; run all again")
    fewest = min(len(found[name]) for name in ("sst2", "squad"))
    if fewest < LEAST_SEEDS:
        raise InputError(f"{study}: finetune.seeds: {fewest} is not allowed; expected {LEAST_SEEDS} seeds or more")
    (commit,) = commits
    times = ", ".join(map(duration, seconds))
    return Entry(
        commit=commit, date=max(dates), machine=", ".join(dict.fromkeys(machines)),
        time=f"{times} of tokenizing, training, perplexity and scoring", change=change,
        command="\n".join([f"git checkout {commit[:12]}", *runs]), figures=rounded(found),
    )  # fmt: skip


def _read_origin(study: str, command: str, folder: Path) -> RunOrigin:
    if not (folder / RESULT).is_file() or not (folder / ORIGIN).is_file():
        raise InputError(f"{study} was not run to its end: {command}")
    if StudyResult.read(folder / RESULT).small:
        raise InputError(f"{study}: a small run is no record: {command}")
    origin = RunOrigin.read(folder / ORIGIN)
    if origin.commit is None or origin.changed:
        why = f"{origin.changed[0]} was not committed" if origin.changed else "nothing was committed"
        raise InputError(f"{study}: the run is of no commit, as {why} when it began; commit, and {command}")
    return origin


def add_entry(path: Path, entry: Entry) -> None:
    """Write it behind the others, whose comments and form are kept.

    Raises InputError where a run of this commit is there already.
    """
    if any(each.commit == entry.commit for each in read_records(path)):
        raise InputError(f"{path}: a run of commit {entry.commit} is there already")
    yaml = YAML()
    yaml.width = 120
    yaml.indent(mapping=2, sequence=4, offset=2)
    content = yaml.load(path.read_text(encoding="utf-8")) if path.is_file() else {"entries": []}
    values = asdict(entry) | {"command": LiteralScalarString(entry.command)}
    content["entries"].append({name: value for name, value in values.items() if value not in ((), "")})
    stream = StringIO()
    yaml.dump(content, stream)
    write_text(path, stream.getvalue())


def records_page(project: Path) -> str:
    """docs/records.md: the runs of each budget."""
    budgets = []
    for study, (title, _) in BUDGETS.items():
        entries = read_records(project / STUDIES / study / RECORDS)
        stood = standings(entries)
        runs = [
            (entry, _figures_table(entry, of), Code(entry.command, "sh"), _tried_table(entry))
            for entry, of in zip(entries, stood, strict=True)
        ]
        budgets.append((title, study, _runs_table(entries, stood), runs))
    return fill_markdown("records.md.j2", Path(__file__).parent, budgets=budgets).rstrip() + "\n"


def _title(name: str) -> str:
    data, key, figure = FIGURES[name]
    return f"{data} {figure_name(key, figure)}{', %' if figure.scale in SHARES else ''}"


def _runs_table(entries: Sequence[Entry], stood: Sequence[Mapping[str, Standing]]) -> Table:
    """A row a run, the best so far in bold; one that says so where there is none."""
    header = ("run", "commit", "date", *map(_title, FIGURES))
    rows = [
        (str(i), entry.commit[:7], entry.date, *(entry.text(name) for name in FIGURES))
        for i, entry in enumerate(entries, 1)
    ]
    best = {name: place for place, of in enumerate(stood) for name, each in of.items() if each.is_best}
    bold = frozenset((place, 3 + list(FIGURES).index(name)) for name, place in best.items())
    return Table(header, rows or [("no run was made yet", *[NOTHING] * (len(header) - 1))], bold=bold)


def _figures_table(entry: Entry, stood: Mapping[str, Standing]) -> Table:
    rows = []
    for name, of in stood.items():
        p = NOTHING if of.p is None else f"below {SMALLEST_P:.4f}" if of.p < SMALLEST_P else f"{of.p:.4f}"
        against = NOTHING if of.before is None else str(of.before + 1)
        rows.append((_title(name), entry.text(name), entry.seeds(name), against, p, of.said))
    return Table(("figure", "mean", "by seed", "against run", "p", "result"), rows)


def _tried_table(entry: Entry) -> Table:
    rows = [
        (each.idea, each.figure, "not noted" if each.seeds is None else str(each.seeds), "yes" if each.kept else "no")
        for each in entry.tried
    ]
    return Table(("tried", "what it gave", "seeds", "kept"), rows)
