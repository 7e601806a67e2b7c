"""Figures of a study by their address, such as score.sst2.full.accuracy: what the stages of a run wrote, looked up.

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
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any, Self, TypeVar

import pandas as pd

from retrace.core.paths import on_test
from retrace.core.records import RunRecord
from retrace.core.settings import build, plugin_names
from retrace.estimates.architectures import HEADS, closed_form, count_parameters, find_model, preset_names, sums
from retrace.estimates.published_memory import UNIT, example_memory
from retrace.evaluation.records import DETAILS, Details
from retrace.finetuning.method import read_method
from retrace.finetuning.settings import METHODS, method_settings
from retrace.perplexity.measures import DETAILS as PERPLEXITY
from retrace.perplexity.measures import UNITS, PerplexityReport
from retrace.report.results import read_curve
from retrace.report.runs import read_runs
from retrace.results.grid import Grid
from retrace.statistics.intervals import Interval, held, student
from retrace.statistics.scales import CURVES, MEASURES, SCALES, Better, Figure

COUNTS = ("updates", "parameters", "trained_parameters", "processes")  # measures that time and machine do not change
NO_HEAD = "none"
T = TypeVar("T")


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


def pretrains(params: Mapping[str, Any]) -> bool:
    """Whether the study pretrains a model: some method starts from no checkpoint."""
    listed = build(Grid, params, "finetune").every_method
    return any(method_settings(params, label)[1].checkpoint is None for label in listed)


class NotRunError(Exception):
    """The figure is of something that params.yaml knows but does not run."""


def find_figure(address: str, reports: Reports) -> Reproduced | None:
    """The figure at an address; None where it is of something that the study did not run.

    Raises LookupError, which says what there is, where the address leads nowhere.
    """
    kind, _, rest = address.partition(".")
    if kind in _COUNTED:
        return Reproduced(counted(address, reports.params), "mebibytes" if kind == "memory" else "count", is_exact=True)
    find, form = _MEASURED[_there(kind, [*_MEASURED, *_COUNTED])]
    try:
        return find(reports, *_parts(rest, f"{kind}.{form}"))
    except NotRunError:
        return None


def counted(address: str, params: Mapping[str, Any]) -> float:
    """The figure at an address of `parameters`, `formula` or `memory`; `params` has the settings of methods.

    Raises LookupError, which says what there is, where the address leads nowhere.
    """
    kind, _, rest = address.partition(".")
    count, form = _COUNTED[_there(kind, _COUNTED)]
    return count(params, *_parts(rest, f"{kind}.{form}"))


def method_names(params: Mapping[str, Any]) -> list[str]:
    """The labels of params.yaml's methods and the files of retrace/methods, which need no settings."""
    return sorted({*plugin_names(METHODS), *params.get("methods", {})})


def _score(reports: Reports, task: str, method: str, name: str) -> Reproduced:
    found = _run(reports.details.tasks, task, reports)
    scores = _run(found.methods, method, reports)
    name = _figure(name, scores.figures)
    interval, what = scores.intervals.get(name), found.legend[name]
    if interval is None:
        return _over_seeds([seed.figures[name] for seed in scores.seeds.values()], what)
    ends = {end: interval[end] for end in ("low", "high")}  # of examples and, where there are several, of seeds
    return Reproduced(scores.figures[name], what.scale, scores.std.get(name), ends, better=what.better)


def _before(reports: Reports, task: str, method: str, name: str) -> Reproduced:
    found = _run(reports.details.tasks, task, reports)
    before = [seed.before for seed in _run(found.methods, method, reports).seeds.values()]
    name = _figure(name, before[0])
    return _over_seeds([figures[name] for figures in before], found.legend[name])


def _epoch(reports: Reports, task: str, method: str, number: str, name: str) -> Reproduced:
    curve = _run(reports.curves, task, reports)
    _run(dict.fromkeys(curve["method"]), method, reports)
    values = _values(number, curve.loc[curve["method"] == method], name)
    return _over_seeds(values, (CURVES | reports.details.tasks[task].legend)[name])


def _baseline(reports: Reports, task: str, baseline: str, name: str) -> Reproduced:
    found = _run(reports.details.tasks, task, reports)
    scores = found.baselines[_there(baseline, found.baselines)]
    name = _figure(name, scores.figures)
    what = found.legend[name]
    return Reproduced(scores.figures[name], what.scale, interval=scores.intervals.get(name), better=what.better)


def _pretraining(reports: Reports, number: str, name: str) -> Reproduced:
    if reports.pretraining is None:
        raise NotRunError
    (value,) = _values(number, reports.pretraining, _there(name, CURVES))
    return Reproduced(value, CURVES[name].scale)


def _perplexity(reports: Reports, split: str, kind: str, unit: str) -> Reproduced:
    if reports.perplexity is None:
        raise NotRunError
    measures = reports.perplexity.splits[_there(split, reports.perplexity.splits)].measures
    found = measures[_there(kind, measures)]
    value = getattr(found, _there(unit, UNITS))
    if value is None:  # there is none of this text
        raise NotRunError
    ends = {end: at for end, at in found.intervals.get(unit, {}).items() if at is not None}
    return Reproduced(value, UNITS[unit].scale, interval=ends if len(ends) == 2 else None)


def _of_run(reports: Reports, name: str, measure: str) -> Reproduced:
    runs = {run.replace(" ", "."): values for run, values in reports.runs.items()}
    if name not in runs and all(part in reports.named for part in name.split(".")[:2]):
        raise NotRunError
    values = runs[_there(name, runs)].model_dump()
    known = [each for each, value in values.items() if isinstance(value, int | float)]
    value = float(values[_there(measure, known)])
    if measure in COUNTS:
        return Reproduced(value, "count", is_exact=True)
    return Reproduced(value, MEASURES[measure].scale if measure in MEASURES else "score", is_timed=True)


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


_MEASURED: dict[str, tuple[Callable[..., Reproduced], str]] = {
    "score": (_score, "<task>.<method>.<figure>"),
    "before": (_before, "<task>.<method>.<figure>"),
    "epoch": (_epoch, "<task>.<method>.<number>.<figure>"),
    "baseline": (_baseline, "<task>.<name>.<figure>"),
    "pretraining": (_pretraining, "<epoch>.<column>"),
    "perplexity": (_perplexity, "<split>.<kind>.<unit>"),
    "run": (_of_run, "<name>.<measure>"),
}
_COUNTED: dict[str, tuple[Callable[..., float], str]] = {
    "parameters": (_parameters, "<model>.<head>.<method>.<figure>"),
    "formula": (_formula, "<model>.<total or term>"),
    "memory": (_memory, "<method>.<figure>"),
}


def _parts(rest: str, form: str) -> list[str]:
    """The parts of an address after its kind; only the first may have dots."""
    parts = rest.rsplit(".", form.count("<") - 1)
    if len(parts) < form.count("<"):
        raise LookupError(f"expected {form}")
    return parts


def _there(name: str, there: Iterable[str]) -> str:
    if name not in there:
        raise LookupError(f"{name!r} is not there; there is: {', '.join(there)}")
    return name


def _figure(name: str, there: Iterable[str]) -> str:
    """A figure by its name, of which * stands for the end."""
    ends = [each for each in there if name.endswith("*") and each.startswith(name[:-1])]
    return ends[0] if len(ends) == 1 else _there(name, there)


def _run(of: Mapping[str, T], name: str, reports: Reports) -> T:
    """The part of a task or a method, of those that were run."""
    if name not in of and name in reports.named:
        raise NotRunError
    return of[_there(name, of)]


def _values(number: str, curve: pd.DataFrame, name: str) -> list[float]:
    """A figure after an epoch, which a smaller run may not have come to, by seed."""
    if not number.isdecimal():
        raise LookupError(f"{number!r} is no epoch")
    rows = curve.loc[curve["epoch"] == int(number)]
    if rows.empty:
        raise NotRunError
    figures = rows.drop(columns=["method", "seed", "epoch"], errors="ignore").dropna(axis="columns")
    return figures[_there(name, figures)].astype(float).tolist()


def _over_seeds(values: Sequence[float], what: Figure) -> Reproduced:
    """The mean over seeds with Student's interval of it; one seed has no interval."""
    middle, scale, better = mean(values), what.scale, what.better
    if len(values) == 1:
        return Reproduced(middle, scale, better=better)
    std = stdev(values)
    reach = student(len(values) - 1) * std / math.sqrt(len(values))
    interval = held(middle, {"low": middle - reach, "high": middle + reach}, SCALES[scale].ends)
    return Reproduced(middle, scale, std, interval, better=better)
