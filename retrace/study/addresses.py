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
from typing import Any

import pandas as pd

from retrace.core.records import RunRecord
from retrace.core.registry import plugin_names
from retrace.estimates.architectures import HEADS, find_model, preset_names
from retrace.estimates.parameters import closed_form, count_parameters, sums
from retrace.estimates.published_memory import UNIT, example_memory
from retrace.finetuning.method import read_method
from retrace.finetuning.settings import METHODS
from retrace.statistics.intervals import Interval, held, student
from retrace.statistics.scales import SCALES, Better

CURVE_SCALES = {
    "training_loss": "loss", "validation_loss": "loss", "perplexity": "perplexity",
    "next_sentence_accuracy": "fraction",
}  # fmt: skip
UNIT_SCALES = {"perplexity_per_token": "perplexity", "perplexity_per_word": "perplexity", "bits_per_byte": "score"}
MEASURE_SCALES = {"seconds": "seconds", "peak_memory_mib": "mebibytes", "gpu_memory_mib": "mebibytes"}
COUNTS = ("updates", "parameters", "trained_parameters", "processes")  # measures that time and machine do not change
NO_HEAD = "none"


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

    metrics: Mapping[str, Any]
    scores: Mapping[str, Any]
    curves: Mapping[str, pd.DataFrame]  # by task
    pretraining: pd.DataFrame | None
    perplexity: Mapping[str, Any] | None
    runs: Mapping[str, RunRecord]
    named: Collection[str]  # tasks and methods that params.yaml knows, whether or not it lists them to be run
    params: Mapping[str, Any]


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
    found = _run(_run(reports.metrics, task, reports), method, reports)
    name = _figure(name, found["mean"])
    scale, interval = _scale(reports, task, name), reports.scores[task]["methods"][method]["intervals"].get(name)
    if interval is None:
        by_seed = [found[seed][name] for seed in reports.scores[task]["methods"][method]["seeds"]]
        return _over_seeds(by_seed, scale, _better(reports, task, name))
    std = found.get("std", {}).get(name)
    ends = {end: interval[end] for end in ("low", "high")}  # of examples and, where there are several, of seeds
    return Reproduced(found["mean"][name], scale, std, ends, better=_better(reports, task, name))


def _before(reports: Reports, task: str, method: str, name: str) -> Reproduced:
    found = _run(_run(reports.scores, task, reports)["methods"], method, reports)
    before = [seed["before"] for seed in found["seeds"].values()]
    name = _figure(name, before[0])
    by_seed = [figures[name] for figures in before]
    return _over_seeds(by_seed, _scale(reports, task, name), _better(reports, task, name))


def _epoch(reports: Reports, task: str, method: str, number: str, name: str) -> Reproduced:
    curve = _run(reports.curves, task, reports)
    _run(dict.fromkeys(curve["method"]), method, reports)
    rows = _at(number, curve.loc[curve["method"] == method])
    by_seed = [_number(row, name) for row in rows]
    return _over_seeds(by_seed, _scale(reports, task, name), _better(reports, task, name))


def _baseline(reports: Reports, task: str, baseline: str, name: str) -> Reproduced:
    found = _run(reports.metrics, task, reports)["baselines"]
    values = found[_there(baseline, found)]
    name = _figure(name, values)
    interval = reports.scores[task]["baselines"][baseline].get(name)
    better = _better(reports, task, name)
    return Reproduced(values[name], _scale(reports, task, name), interval=interval, better=better)


def _pretraining(reports: Reports, number: str, name: str) -> Reproduced:
    if reports.pretraining is None:
        raise NotRunError
    (row,) = _at(number, reports.pretraining)
    return Reproduced(_number(row, _there(name, CURVE_SCALES)), CURVE_SCALES[name])


def _perplexity(reports: Reports, split: str, kind: str, unit: str) -> Reproduced:
    if reports.perplexity is None:
        raise NotRunError
    found = reports.perplexity[_there(split, reports.perplexity)]
    kinds = {
        name: values
        for name, values in found.items()
        if isinstance(values, Mapping) and "perplexity_per_token" in values
    }
    values = kinds[_there(kind, kinds)]
    if values[_there(unit, UNIT_SCALES)] is None:  # there is none of this text
        raise NotRunError
    interval = values["intervals"][unit] if "intervals" in values else None
    ends = None if interval is None or None in interval.values() else interval
    return Reproduced(values[unit], UNIT_SCALES[unit], interval=ends)


def _of_run(reports: Reports, name: str, measure: str) -> Reproduced:
    runs = {run.replace(" ", "."): values for run, values in reports.runs.items()}
    if name not in runs and all(part in reports.named for part in name.split(".")[:2]):
        raise NotRunError
    values = runs[_there(name, runs)].model_dump()
    known = [each for each, value in values.items() if isinstance(value, int | float)]
    value = float(values[_there(measure, known)])
    if measure in COUNTS:
        return Reproduced(value, "count", is_exact=True)
    return Reproduced(value, MEASURE_SCALES.get(measure, "score"), is_timed=True)


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


def _run(of: Mapping[str, Any], name: str, reports: Reports) -> Any:
    """The part of a task or a method, of those that were run."""
    there = [each for each in of if each not in ("baselines", "flags")]
    if name not in there and name in reports.named:
        raise NotRunError
    return of[_there(name, there)]


def _at(number: str, curve: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of an epoch, which a smaller run may not have come to."""
    if not number.isdecimal():
        raise LookupError(f"{number!r} is no epoch")
    found = curve.loc[curve["epoch"] == int(number)]
    if found.empty:
        raise NotRunError
    return [{str(name): value for name, value in row.items()} for row in found.to_dict("records")]


def _number(row: Mapping[str, Any], name: str) -> float:
    known = [each for each, value in row.items() if each not in ("method", "seed", "epoch") and pd.notna(value)]
    return float(row[_there(name, known)])


def _scale(reports: Reports, task: str, name: str) -> str:
    return "loss" if name.endswith("loss") else reports.scores[task]["scales"][name]


def _better(reports: Reports, task: str, name: str) -> Better | None:
    return reports.scores[task].get("better", {}).get(name)


def _over_seeds(values: Sequence[float], scale: str, better: Better | None) -> Reproduced:
    """The mean over seeds with Student's interval of it; one seed has no interval."""
    middle = mean(values)
    if len(values) == 1:
        return Reproduced(middle, scale, better=better)
    std = stdev(values)
    reach = student(len(values) - 1) * std / math.sqrt(len(values))
    interval = held(middle, {"low": middle - reach, "high": middle + reach}, SCALES[scale].ends)
    return Reproduced(middle, scale, std, interval, better=better)
