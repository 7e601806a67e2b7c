"""Retrace's figures beside the published ones: found by their address, such as score.sst2.full.accuracy, and judged.

- score.<task>.<method>.<figure>: at the epoch that was kept, the mean over seeds
- before.<task>.<method>.<figure>: before any training
- epoch.<task>.<method>.<number>.<figure>: after an epoch; of losses too
- baseline.<task>.<name>.<figure>: of what needs no language model
- pretraining.<epoch>.<column>: of the pretraining's learning curve
- perplexity.<split>.<kind>.<unit>: on held-out text
- run.<name>.<measure>: time, memory and counts of a stage; a name may have dots, as in run.sst2.full.1.seconds

Counted without a run, exactly:

- parameters.<model>.<head>.<method>.<figure>: of an architecture at full size; a classifier has two classes
- formula.<model>.<total or term>: by the formula of the architecture, or one of its terms, such as attention
- memory.<full or adapter>.<constant, per_token or per_token_pair>: of the published example, in 10⁶ bytes

A figure may end in *, for the one whose name begins so: score.squad.full.meteor* is meteor or, without WordNet,
meteor_exact_stem.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import mean, stdev
from typing import Any, Self

import pandas as pd

from retrace.core.errors import InputError
from retrace.core.paths import on_test
from retrace.core.records import RunRecord
from retrace.core.settings import build, plugin_names
from retrace.estimates.architectures import HEADS, closed_form, count_parameters, find_model, preset_names, sums
from retrace.estimates.memory import UNIT, example_memory
from retrace.evaluation.records import DETAILS, Details, Figures
from retrace.finetuning.method import read_method
from retrace.finetuning.settings import METHODS, method_settings
from retrace.perplexity.measures import DETAILS as PERPLEXITY
from retrace.perplexity.measures import UNITS, PerplexityReport
from retrace.report.results import read_curve
from retrace.report.runs import read_runs
from retrace.results.grid import Grid
from retrace.statistics.intervals import Interval, held, student
from retrace.statistics.scales import CURVES, MEASURES, SCALES, SHARES, Better, Legend, factor
from retrace.study.published import (
    BETWEEN,
    HALF,
    PUBLISHED,
    Cell,
    ComparedCell,
    ComparedTable,
    Form,
    PublishedStudy,
    PublishedTable,
    Verdict,
)

COUNTS = ("updates", "parameters", "trained_parameters", "processes")  # measures that time and machine do not change
NO_HEAD = "none"
MEASURED = ("score", "before", "epoch", "baseline", "pretraining", "perplexity", "run")  # kinds of addresses
SEEDED = ("score", "perplexity")  # kinds of addresses whose figures have an interval, and vary from seed to seed


@dataclass(frozen=True)
class Reproduced:
    """A figure of Retrace's."""

    value: float
    scale: str
    std: float | None = None  # over seeds
    interval: Interval | None = None  # 95%, on the same scale
    is_exact: bool = False  # counted, so that nothing about it is chance
    is_timed: bool = False  # of the machine and the hour, so that another run has another
    better: Better | None = None  # which way, where a score says so; else as its scale has it


@dataclass(frozen=True)
class Reports:
    """What the stages of a study wrote; None of what it does not run."""

    details: Details
    curves: Mapping[str, pd.DataFrame]  # by task
    pretraining: pd.DataFrame | None
    perplexity: PerplexityReport | None
    runs: Mapping[str, RunRecord]
    named: Collection[str]  # tasks and methods that params.yaml knows, whether or not it lists them to be run
    params: Mapping[str, Any]

    @classmethod
    def read(cls, params: Mapping[str, Any]) -> Self:
        """What the stages wrote of what params.yaml lists."""
        grid, details, pretrained = build(Grid, params, "finetune"), Details.read(DETAILS), pretrains(params)
        tasks = ["sst2", "squad"]
        for section in (params, params.get("hub", {})):
            tasks += [*section.get("classification", {}), *section.get("question_answering", {})]
        tasks += [on_test(task) for task in tasks if task not in details.tasks]  # of one that was run it is known
        return cls(
            details=details,
            curves={task: read_curve(f"tasks/{task}") for task in grid.all_tasks},
            pretraining=read_curve("pretrain") if pretrained else None,
            perplexity=PerplexityReport.read(PERPLEXITY) if pretrained else None,
            runs=read_runs(params),
            named={*tasks, *grid.all_tasks, *grid.every_method, *params.get("methods", {}), "pretrain"},
            params=params,
        )

    @cached_property
    def figures(self) -> dict[tuple[str, ...], Reproduced | None]:
        """Every figure that was measured, by the parts of its address; None where it is not defined."""
        return {(*path, name): found for path, figures in _measured(self) for name, found in figures.items()}


def pretrains(params: Mapping[str, Any]) -> bool:
    """Whether the study pretrains a model: some method starts from no checkpoint."""
    listed = build(Grid, params, "finetune").every_method
    return any(method_settings(params, label)[1].checkpoint is None for label in listed)


def find_figure(address: str, reports: Reports) -> Reproduced | None:
    """The figure at an address; None where it is of something that the study did not run.

    Raises LookupError, which says what there is, where the address leads nowhere.
    """
    kind, *steps = address.split(".")
    if kind in _COUNTED:
        return Reproduced(counted(address, reports.params), "mebibytes" if kind == "memory" else "count", is_exact=True)
    _there(kind, [*MEASURED, *_COUNTED])
    paths = [path for path in reports.figures if path[0] == kind]
    if not paths:
        return None
    for place, step in enumerate(steps, 1):
        there = dict.fromkeys(path[place] for path in paths if len(path) > place)
        ends = [name for name in there if step.endswith("*") and name.startswith(step[:-1])]
        name = ends[0] if len(ends) == 1 else step
        # Numbers are epochs and seeds, which a smaller run may not have come to.
        if name not in there and place < len(steps) and (name in reports.named or name.isdecimal()):
            return None
        _there(name, there)
        paths = [path for path in paths if path[place] == name]
    if len(paths[0]) > len(steps) + 1:
        further = dict.fromkeys(path[len(steps) + 1] for path in paths)
        raise LookupError(f"it has to go on, with one of {', '.join(further)}")
    return reports.figures[paths[0]]


def counted(address: str, params: Mapping[str, Any]) -> float:
    """The figure at an address of `parameters`, `formula` or `memory`; `params` has the settings of methods.

    Raises LookupError, which says what there is, where the address leads nowhere.
    """
    kind, _, rest = address.partition(".")
    count, form = _COUNTED[_there(kind, _COUNTED)]
    steps = rest.rsplit(".", form.count("."))  # a model's name may have dots
    if len(steps) <= form.count("."):
        raise LookupError(f"expected {kind}.{form}")
    return count(params, *steps)


def method_names(params: Mapping[str, Any]) -> list[str]:
    """The labels of params.yaml's methods and the files of retrace/methods, which need no settings."""
    return sorted({*plugin_names(METHODS), *params.get("methods", {})})


def _measured(reports: Reports) -> Iterator[tuple[tuple[str, ...], Mapping[str, Reproduced | None]]]:
    """The figures of each thing that was run, by name, behind the parts of their address."""
    for task, of in reports.details.tasks.items():
        for method, scores in of.methods.items():
            # Intervals are of examples and, where there are several, of seeds.
            known = {name: value for name, value in scores.figures.items() if name in scores.intervals}
            kept = _figures(known, of.legend, scores.intervals, scores.std)
            seeds = scores.seeds.values()
            yield ("score", task, method), _over_seeds([seed.figures for seed in seeds], of.legend) | kept
            yield ("before", task, method), _over_seeds([seed.before for seed in seeds], of.legend)
        for name, scores in of.baselines.items():
            yield ("baseline", task, name), _figures(scores.figures, of.legend, scores.intervals)
    for task, curve in reports.curves.items():
        legend = CURVES | reports.details.tasks[task].legend
        for method, epochs in curve.groupby("method"):
            for epoch, rows in epochs.groupby("epoch"):
                yield ("epoch", task, str(method), str(epoch)), _over_seeds(rows, legend)
    if reports.pretraining is not None:
        for epoch, rows in reports.pretraining.groupby("epoch"):
            yield ("pretraining", str(epoch)), _over_seeds(rows, CURVES)
    for split, of in reports.perplexity.splits.items() if reports.perplexity else ():
        for kind, found in of.measures.items():
            values = {unit: getattr(found, unit) for unit in UNITS}
            yield ("perplexity", split, kind), _figures(values, UNITS, found.intervals)
    for name, record in reports.runs.items():
        yield ("run", *name.split()), _of_run(record)


def _over_seeds(seeds: pd.DataFrame | list[Figures], legend: Legend) -> dict[str, Reproduced | None]:
    """The mean of each figure, with Student's interval of it; one seed has no interval.

    None where one of the seeds has no such figure: a mean over the others would be of chosen seeds.
    """
    means: dict[str, float | None] = {}
    std: dict[str, float] = {}
    intervals: dict[str, Interval] = {}
    for name, column in pd.DataFrame(seeds).dropna(axis="columns", how="all").items():
        if name in legend:
            name, values = str(name), column.astype(float).tolist()
            middle = means[name] = None if column.isna().any() else mean(values)
            if middle is not None and len(values) > 1:
                std[name] = stdev(values)
                reach = student(len(values) - 1) * std[name] / math.sqrt(len(values))
                ends = SCALES[legend[name].scale].ends
                intervals[name] = held(middle, {"low": middle - reach, "high": middle + reach}, ends)
    return _figures(means, legend, intervals, std)


def _figures(
    values: Mapping[str, float | None], legend: Legend, intervals: Mapping[str, Mapping[str, float | None]],
    std: Mapping[str, float] = {},
) -> dict[str, Reproduced | None]:  # fmt: skip
    """The figures of these values; of an interval low and high, where both are known."""
    found: dict[str, Reproduced | None] = {}
    for name, value in values.items():
        ends = {end: at for end, at in intervals.get(name, {}).items() if end in ("low", "high") and at is not None}
        interval, what = ends if len(ends) == 2 else None, legend[name]
        made = None if value is None else Reproduced(value, what.scale, std.get(name), interval, better=what.better)
        found[name] = made
    return found


def _of_run(record: RunRecord) -> dict[str, Reproduced]:
    found = {}
    for name, value in record.model_dump().items():
        if name in COUNTS:
            found[name] = Reproduced(float(value), "count", is_exact=True)
        elif isinstance(value, int | float):
            scale = MEASURES[name].scale if name in MEASURES else "score"
            found[name] = Reproduced(float(value), scale, is_timed=True)
    return found


def _parameters(params: Mapping[str, Any], model: str, head: str, method: str, figure: str) -> float:
    config = find_model(_there(model, preset_names())).config
    chosen = HEADS.get(_there(head, [NO_HEAD, *HEADS]))
    how = read_method(params, _there(method, method_names(params)))
    found = sums(count_parameters(chosen, config, how.tune)[1])
    return found[_there(figure, found)]


def _formula(_: Mapping[str, Any], model: str, figure: str) -> float:
    form = closed_form(find_model(_there(model, preset_names())).config)
    if form is None:
        raise LookupError(f"no formula is known for the family of {model}")
    found = {"total": form.total} | {term.name: term.count for term in form.terms}
    return found[_there(figure, found)]


def _memory(_: Mapping[str, Any], method: str, figure: str) -> float:
    of_example = example_memory()
    found = vars(of_example[_there(method, of_example)])
    return found[_there(figure, found)] / UNIT


_COUNTED: dict[str, tuple[Callable[..., float], str]] = {
    "parameters": (_parameters, "<model>.<head>.<method>.<figure>"),
    "formula": (_formula, "<model>.<total or term>"),
    "memory": (_memory, "<method>.<figure>"),
}


def _there(name: str, there: Collection[str]) -> str:
    if name not in there:
        raise LookupError(f"{name!r} is not there; there is: {', '.join(there)}")
    return name


def compare_tables(study: PublishedStudy, reports: Reports) -> dict[str, ComparedTable]:
    """The study's tables with Retrace's figures, by name.

    Raises InputError where an address leads nowhere.
    """
    return {table.name: _compared(table, reports) for table in study.tables}


def evidence(study: PublishedStudy, reports: Reports) -> list[dict[str, str]]:
    """The figures shown beside each doubt, each on its own scale; both ends of a range; no text of what was not run.

    Raises InputError where an address leads nowhere.
    """
    return [
        {
            what: BETWEEN.join(
                Form(SCALES[end.scale].digits).text(end.value, interval=end.interval)
                for end in _find(address, reports, f"doubts[{place}]: {what}")
            )
            for what, address in doubt.figures.items()
        }
        for place, doubt in enumerate(study.doubts)
    ]


def _compared(table: PublishedTable, reports: Reports) -> ComparedTable:
    rows: dict[str, dict[str, ComparedCell]] = {}
    for cell in table.cells():
        where = f"tables: {table.name}: {cell.row}: {cell.column}"
        ends = [_on_scale(end, cell.scale, f"{where}: {cell.address}") for end in _find(cell.address, reports, where)]
        rows.setdefault(cell.row, {})[cell.column] = _compared_cell(cell, ends)
    return ComparedTable(
        title=table.title, rows=rows, section=table.section, best=_best_cells(rows) if table.best else {}
    )


def _compared_cell(cell: Cell, found: Sequence[Reproduced]) -> ComparedCell:
    """The cell with the figure that was found, or the two ends of a range."""
    verdict, published = _verdict(cell, found), cell.published
    found = [] if verdict == Verdict.NOT_RUN else found
    one = found[0] if len(found) == 1 else None
    return ComparedCell(
        verdict=verdict,
        scale=cell.scale,
        printed=published and published.text,
        shown=BETWEEN.join(cell.form.text(each.value, each.std, each.interval) for each in found) or None,
        published=published and published.value,
        reproduced=found[0].value if found else None,
        published_std=published and published.std,
        published_end=published and published.end,
        reproduced_end=found[1].value if len(found) == 2 else None,
        std=one and one.std,
        interval=one and one.interval,
        better=found[0].better if found else None,
    )


def _best_cells(rows: Mapping[str, Mapping[str, ComparedCell]]) -> dict[str, set[tuple[str, str]]]:
    """Row and column of the best published and reproduced figures of each column."""
    best: dict[str, set[tuple[str, str]]] = {"published": set(), "reproduced": set()}
    for column in next(iter(rows.values())):
        cells = {(row, column): columns[column] for row, columns in rows.items()}
        scale = SCALES[next(iter(cells.values())).scale]
        of_scale = "higher" if scale.is_best_high else "lower"
        said = next((cell.better for cell in cells.values() if cell.better), of_scale)
        for which in best if said != "neither" else ():
            values = {place: value for place, cell in cells.items() if (value := getattr(cell, which)) is not None}
            top = (max if said == "higher" else min)(values.values(), default=None)
            best[which] |= {place for place, value in values.items() if value == top and len(values) > 1}
    return best


def _find(address: str | None, reports: Reports, where: str) -> Iterator[Reproduced]:
    """The figure at an address, or at the two of a range; none of what was not run."""
    for end in address.split(BETWEEN) if address else ():
        try:
            found = find_figure(end, reports)
        except LookupError as error:
            raise InputError(f"{PUBLISHED}: {where}: {end}: {error.args[0]}") from None
        if found is not None:
            yield found


def _on_scale(found: Reproduced, scale: str, where: str) -> Reproduced:
    if (found.scale in SHARES) != (scale in SHARES):
        raise InputError(f"{PUBLISHED}: {where}: scale: {scale!r} is not allowed; it is on the scale {found.scale}")
    times = factor(found.scale, scale)
    interval: Interval | None = found.interval and {end: times * at for end, at in found.interval.items()}
    std = None if found.std is None else times * found.std
    return replace(found, value=times * found.value, scale=scale, std=std, interval=interval)


def _verdict(cell: Cell, found: Sequence[Reproduced]) -> Verdict:
    """`found` has one figure, or those of both ends of a range; fewer where they were not run."""
    if cell.address is None or len(found) < len(cell.address.split(BETWEEN)):
        return Verdict.NOT_RUN
    if found[0].is_timed:
        return Verdict.OF_MACHINE
    if cell.published is None:
        return Verdict.NOT_PUBLISHED
    first, last = cell.published.value, cell.published.end
    if last is None:
        return _of_figure(cell, first, found[0])
    if len(found) == 2:
        verdicts = [_of_figure(cell, printed, each) for printed, each in zip((first, last), found, strict=True)]
        return max(verdicts, key=list(Verdict).index)
    if min(first, last) - cell.published.half <= found[0].value <= max(first, last) + cell.published.half:
        return Verdict.IN_RANGE
    nearest = min((first, last), key=lambda end: abs(end - found[0].value))
    return _of_figure(cell, nearest, found[0])


def _of_figure(cell: Cell, printed: float, found: Reproduced) -> Verdict:
    if abs(found.value - printed) <= HALF * 10.0**-cell.digits:
        return Verdict.EXACT
    if found.is_exact:
        return Verdict.BEYOND
    if found.interval is None:
        return Verdict.UNKNOWN
    if found.interval["low"] <= printed <= found.interval["high"]:
        return Verdict.WITHIN
    return Verdict.ONE_SEED if found.std is None and (cell.address or "").startswith(SEEDED) else Verdict.BEYOND
