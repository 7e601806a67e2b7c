"""Published figures compared with Retrace's, each found by an address such as score.sst2.full.accuracy.

- score.<task>.<method>.<figure>: at the epoch that was kept, the mean over seeds
- before.<task>.<method>.<figure>: before any training
- epoch.<task>.<method>.<number>.<figure>: after an epoch; losses too
- baseline.<task>.<name>.<figure>: of a baseline
- pretraining.<epoch>.<column>: of the learning curve of pretraining
- perplexity.<split>.<kind>.<unit>: on held-out text
- run.<name>.<measure>: time, memory and counts of a training run, as in run.pretrain.updates, run.sst2.full.1.seconds

Counted exactly, without a run:

- parameters.<model>.<head>.<method>.<figure>: of an architecture at full size; a classifier has two classes
- formula.<model>.<total or term>: by the formula of the architecture, or one of its terms, such as attention
- memory.<full or adapter>.<constant, per_token or per_token_pair>: of the published example, in 10⁶ bytes

A figure may end in *, which stands for the rest of its name: score.squad.full.meteor* is meteor or, without WordNet,
meteor_exact_stem.
"""

import fnmatch
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import mean, stdev
from typing import Any, Self

import pandas as pd

from retrace.core.errors import InputError
from retrace.core.paths import PRETRAINED, on_test
from retrace.core.records import RunRecord
from retrace.estimates.architectures import HEADS, closed_form, count_parameters, find_architecture, sums
from retrace.estimates.formulas import UNIT, example_memory
from retrace.evaluation.records import DETAILS, Details, Figures
from retrace.finetuning.method import Method, method_names, read_method
from retrace.perplexity.measures import PERPLEXITY_DETAILS, UNITS, PerplexityReport
from retrace.report.results import read_curve
from retrace.report.runs import read_runs
from retrace.results.grid import Grid
from retrace.statistics.intervals import Interval, with_seeds
from retrace.statistics.scales import CURVES, MEASURES, SCALES, SHARES, Better, Figure, Legend, factor
from retrace.study.published import (
    PUBLISHED,
    ComparedCell,
    ComparedTable,
    NumberFormat,
    PublishedCell,
    PublishedStudy,
    Verdict,
)

COUNTS = ("updates", "tokens", "parameters", "trained_parameters", "processes")  # the same on every machine
NO_HEAD = "none"
MEASURED = ("score", "before", "epoch", "baseline", "pretraining", "perplexity", "run")  # kinds of addresses
SEEDED = ("score", "perplexity")  # kinds of addresses whose figures have an interval and vary between seeds
UNSEEDED = "perplexity.*.unigram.*"  # but these: frequencies of tokens do not depend on a seed


@dataclass(frozen=True)
class Reproduced:
    """One of Retrace's figures."""

    value: float
    scale: str
    std: float | None = None  # over seeds
    interval: Interval | None = None  # 95%, on the same scale
    is_exact: bool = False  # counted, not subject to chance
    is_timed: bool = False  # depends on the machine and varies from run to run
    better: Better | None = None  # which way is better, if the metric says so; else the scale does


@dataclass(frozen=True)
class Reports:
    """What the stages of a study wrote; None for those that it does not run."""

    details: Details
    curves: Mapping[str, pd.DataFrame]  # by task
    pretraining: pd.DataFrame | None
    perplexity: PerplexityReport | None
    runs: Mapping[str, RunRecord]
    named: Collection[str]  # all tasks and methods in params.yaml, also those that were not run
    params: Mapping[str, Any]

    @classmethod
    def read(cls, params: Mapping[str, Any]) -> Self:
        """What the stages wrote for the tasks and methods that params.yaml lists."""
        grid, details, pretrained = Grid.read(params), Details.read(DETAILS), pretrains(params)
        own = [*params.get("classification", {}), *params.get("question_answering", {})]
        tasks = ["sst2", "squad", *own, *params.get("hub", {}).get("classification", {})]
        tasks += [on_test(task) for task in tasks if task not in details.tasks]  # other test sets are in details
        return cls(
            details=details,
            curves={task: read_curve(f"tasks/{task}") for task in grid.all_tasks},
            pretraining=read_curve("pretrain/epochs") if pretrained else None,
            perplexity=PerplexityReport.read(PERPLEXITY_DETAILS) if pretrained else None,
            runs=read_runs(params),
            named={*tasks, *grid.all_tasks, *grid.every_method, *params.get("methods", {}), "pretrain"},
            params=params,
        )

    @cached_property
    def figures(self) -> dict[str, Any]:
        """Every measured figure, in a mapping for each part of its address; None if it is undefined."""
        tree: dict[str, Any] = {}
        for path, figures in _measured(self):
            branch = tree
            for part in path:
                branch = branch.setdefault(part, {})
            branch.update(figures)
        return tree


def pretrains(params: Mapping[str, Any]) -> bool:
    """Whether the study pretrains a model: some method starts from it and not from a checkpoint."""
    return any(read_method(params, label).base == PRETRAINED for label in Grid.read(params).every_method)


def find_figure(address: str, reports: Reports) -> Reproduced | None:
    """The figure at an address; None if it is undefined, or the study did not run it.

    Raises LookupError, which lists what there is, where the address is wrong.
    """
    kind, *steps = address.split(".")
    if kind in _COUNTED:
        scale = "count" if kind != "memory" else "mebibytes" if steps[-1:] == ["constant"] else "score"  # per token
        return Reproduced(counted(address, reports.params), scale, is_exact=True)
    _known(kind, [*MEASURED, *_COUNTED])
    found: Any = reports.figures.get(kind)
    for place, step in enumerate(steps if found else (), 1):
        if not isinstance(found, Mapping):
            raise LookupError(f"the address is too long; leave out {'.'.join(steps[place - 1 :])}")
        names = list(found)
        matching = fnmatch.filter(names, step)
        name = matching[0] if len(matching) == 1 else step
        # Numbers are epochs and seeds, of which a small run may have fewer.
        if name not in names and place < len(steps) and (name in reports.named or name.isdecimal()):
            return None
        found = found[_known(name, names)]
    if isinstance(found, Mapping):
        raise LookupError(f"the address is incomplete; continue with one of {', '.join(found)}")
    return found


def counted(address: str, params: Mapping[str, Any]) -> float:
    """The figure at an address of `parameters`, `formula` or `memory`; `params` has the settings of methods.

    Raises LookupError, which lists what there is, where the address is wrong.
    """
    kind, _, rest = address.partition(".")
    count, form = _COUNTED[_known(kind, _COUNTED)]
    *steps, figure = rest.rsplit(".", form.count("."))  # a model's name may have dots
    if len(steps) < form.count("."):
        raise LookupError(f"expected {kind}.{form}")
    found = count(params, *steps)
    return found[_known(figure, found)]


def known_method(params: Mapping[str, Any], name: str) -> Method:
    """The method of that name.

    Raises LookupError, which lists the methods, where there is none.
    """
    return read_method(params, _known(name, method_names(params), "method: "))


def _measured(reports: Reports) -> Iterator[tuple[tuple[str, ...], Mapping[str, Reproduced | None]]]:
    """The first parts of an address, and the figures there by name, for everything that was run."""
    for task, details in reports.details.tasks.items():
        for method, scores in details.methods.items():
            # These intervals cover examples and, where there are several, seeds.
            known = {name: value for name, value in scores.figures.items() if name in scores.intervals}
            kept = _figures(known, details.legend, scores.intervals, scores.std)
            seeds = scores.seeds.values()
            yield ("score", task, method), _over_seeds([seed.figures for seed in seeds], details.legend) | kept
            yield ("before", task, method), _over_seeds([seed.before for seed in seeds], details.legend)
        for name, scores in details.baselines.items():
            yield ("baseline", task, name), _figures(scores.figures, details.legend, scores.intervals)
    for task, curve in reports.curves.items():
        legend = CURVES | reports.details.tasks[task].legend
        for method, epochs in curve.groupby("method"):
            for epoch, rows in epochs.groupby("epoch"):
                yield ("epoch", task, str(method), str(epoch)), _over_seeds(rows, legend)
    if reports.pretraining is not None:
        for epoch, rows in reports.pretraining.groupby("epoch"):
            yield ("pretraining", str(epoch)), _over_seeds(rows, CURVES)
    splits = reports.perplexity.splits if reports.perplexity else {}
    for split, measured in splits.items():
        for kind, found in measured.measures.items():
            values = {unit: getattr(found, unit) for unit in UNITS}
            yield ("perplexity", split, kind), _figures(values, UNITS, found.intervals)
    for name, record in reports.runs.items():
        yield ("run", *name.split()), _of_run(record)


def _over_seeds(seeds: pd.DataFrame | list[Figures], legend: Legend) -> dict[str, Reproduced | None]:
    """The mean of each figure; None if a seed lacks it, as a mean over the other seeds would be biased."""
    columns = pd.DataFrame(seeds).dropna(axis="columns", how="all").items()
    return {
        str(name): None if column.isna().any() else _mean(column.astype(float).tolist(), legend[str(name)])
        for name, column in columns
        if name in legend
    }


def _mean(values: list[float], what: Figure) -> Reproduced:
    """The mean over seeds, with Student's interval where there are several, unless all are equal."""
    middle, std = mean(values), stdev(values) if len(values) > 1 else None
    interval = with_seeds({"low": middle, "high": middle}, values, SCALES[what.scale].ends) if std else None
    return Reproduced(middle, what.scale, std, interval, better=what.better)


def _figures(
    values: Mapping[str, float | None], legend: Legend, intervals: Mapping[str, Mapping[str, float | None]],
    std: Mapping[str, float] = {},
) -> dict[str, Reproduced | None]:  # fmt: skip
    """The figures with these values; an interval counts where both of its ends are known."""
    found: dict[str, Reproduced | None] = dict.fromkeys(values)
    for name, value in values.items():
        if value is not None:
            known, what = intervals.get(name, {}), legend[name]
            ends = {end: at for end in ("low", "high") if (at := known.get(end)) is not None}
            interval = ends if len(ends) == 2 else None
            found[name] = Reproduced(value, what.scale, std.get(name), interval, better=what.better)
    return found


def _of_run(record: RunRecord) -> dict[str, Reproduced]:
    found = {}
    for name, value in record.model_dump().items():
        if isinstance(value, int | float):
            is_count = name in COUNTS
            scale = "count" if is_count else MEASURES[name].scale if name in MEASURES else "score"
            found[name] = Reproduced(float(value), scale, is_exact=is_count, is_timed=not is_count)
    return found


def _parameters(params: Mapping[str, Any], model: str, head: str, method: str) -> dict[str, int]:
    chosen = HEADS.get(_known(head, [NO_HEAD, *HEADS]))
    return sums(count_parameters(chosen, find_architecture(model).config, known_method(params, method).tune)[1])


def _formula(_: Mapping[str, Any], model: str) -> dict[str, int]:
    form = closed_form(find_architecture(model).config)
    assert form is not None, "the family of every architecture has a formula"
    return {"total": form.total} | {term.name: term.count for term in form.terms}


def _memory(_: Mapping[str, Any], method: str) -> dict[str, float]:
    of_example = example_memory()
    return {name: size / UNIT for name, size in vars(of_example[_known(method, of_example)]).items()}


_COUNTED: dict[str, tuple[Callable[..., Mapping[str, float]], str]] = {  # figures by name, and the form of an address
    "parameters": (_parameters, "<model>.<head>.<method>.<figure>"),
    "formula": (_formula, "<model>.<total or term>"),
    "memory": (_memory, "<method>.<figure>"),
}


def _known(name: str, allowed: Collection[str], what: str = "") -> str:
    if name not in allowed:
        raise LookupError(f"{what}{name!r} not found; expected one of {', '.join(allowed)}")
    return name


def compare_tables(study: PublishedStudy, reports: Reports) -> dict[str, ComparedTable]:
    """The study's tables with Retrace's figures, by name.

    Raises InputError if an address is wrong.
    """
    found = {}
    for table in study.tables:
        rows: dict[str, dict[str, ComparedCell]] = {}
        for cell in table.cells():
            where = f"tables: {table.name}: {cell.row}: {cell.column}"
            found_here = _find(cell.address, reports, where)
            shown = found_here and _on_scale(found_here, cell.scale, f"{where}: {cell.address}")
            rows.setdefault(cell.row, {})[cell.column] = _compared_cell(cell, shown)
        best = _best_cells(rows) if table.best else {}
        found[table.name] = ComparedTable(title=table.title, rows=rows, section=table.section, best=best)
    return found


def evidence(study: PublishedStudy, reports: Reports) -> list[dict[str, str]]:
    """The figures shown as evidence for each doubt, each on its own scale; the text is empty if nothing was run.

    Raises InputError if an address is wrong.
    """
    found = []
    for place, doubt in enumerate(study.doubts):
        texts = dict.fromkeys(doubt.figures, "")
        for what, address in doubt.figures.items():
            if shown := _find(address, reports, f"doubts[{place}]: {what}"):
                texts[what] = NumberFormat(SCALES[shown.scale].digits).text(shown.value, interval=shown.interval)
        found.append(texts)
    return found


def _compared_cell(cell: PublishedCell, found: Reproduced | None) -> ComparedCell:
    published = cell.published
    return ComparedCell(
        verdict=_verdict(cell, found), scale=cell.scale, printed=published and published.text,
        shown=found and cell.form.text(found.value, found.std, found.interval),
        published=published and published.value, published_std=published and published.std,
        published_end=published and published.end, reproduced=found and found.value,
        std=found and found.std, interval=found and found.interval, better=found and found.better,
    )  # fmt: skip


def _best_cells(rows: Mapping[str, Mapping[str, ComparedCell]]) -> dict[str, set[tuple[str, str]]]:
    """Row and column of the best figures of each column, published and reproduced."""
    best: dict[str, set[tuple[str, str]]] = {"published": set(), "reproduced": set()}
    for column in next(iter(rows.values())):
        cells = {(row, column): columns[column] for row, columns in rows.items()}
        of_scale = SCALES[next(iter(cells.values())).scale].better
        better = next((cell.better for cell in cells.values() if cell.better), of_scale)
        if better == "neither":
            continue
        for which in best:
            values = {place: value for place, cell in cells.items() if (value := getattr(cell, which)) is not None}
            top = (max if better == "higher" else min)(values.values(), default=None)
            best[which] |= {place for place, value in values.items() if value == top and len(values) > 1}
    return best


def _find(address: str | None, reports: Reports, where: str) -> Reproduced | None:
    """The figure at an address; None without one, or if it was not run."""
    try:
        return find_figure(address, reports) if address else None
    except LookupError as error:
        raise InputError(f"{PUBLISHED}: {where}: {address}: {error.args[0]}") from None


def _on_scale(found: Reproduced, scale: str, where: str) -> Reproduced:
    if (found.scale in SHARES) != (scale in SHARES):
        raise InputError(f"{PUBLISHED}: {where}: scale: {scale!r} is not allowed; it is on the scale {found.scale}")
    times = factor(found.scale, scale)
    interval: Interval | None = found.interval and {end: times * at for end, at in found.interval.items()}
    std = None if found.std is None else times * found.std
    return replace(found, value=times * found.value, scale=scale, std=std, interval=interval)


def _verdict(cell: PublishedCell, found: Reproduced | None) -> Verdict:
    if found is None:
        return Verdict.NOT_MEASURED
    if found.is_timed:
        return Verdict.OF_MACHINE
    if cell.published is None:
        return Verdict.NOT_PUBLISHED
    printed = [end for end in (cell.published.value, cell.published.end) if end is not None]
    if len(printed) == 2 and min(printed) - cell.half <= found.value <= max(printed) + cell.half:
        return Verdict.IN_RANGE
    nearest = min(printed, key=lambda end: abs(end - found.value))
    if abs(found.value - nearest) <= cell.half:
        return Verdict.EXACT
    if found.is_exact:
        return Verdict.BEYOND
    if found.interval is None:
        return Verdict.UNKNOWN
    if found.interval["low"] - cell.half <= nearest <= found.interval["high"] + cell.half:  # it was rounded
        return Verdict.WITHIN
    address = cell.address or ""
    varies = address.startswith(SEEDED) and not fnmatch.fnmatch(address, UNSEEDED)
    return Verdict.ONE_SEED if varies and found.std is None else Verdict.BEYOND
