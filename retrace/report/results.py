"""What the pipeline found, as the page shows it: shares are points of 100, methods stand from the best to the worst."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from retrace.core.paths import ON_TEST, on_test
from retrace.core.settings import build
from retrace.evaluation.records import Details, GroupDetails, TaskDetails
from retrace.report.blocks import figure_text, signed
from retrace.report.names import digits_of, figure_name, noun_of, shown_factor, title_of
from retrace.report.page import REPORTS
from retrace.results.grid import Grid, Kind
from retrace.results.predictions import read_updates
from retrace.statistics.comparisons import DIFFER, MODELS_TIE, TIE
from retrace.statistics.scales import SHARES

PREDICTIONS = Path("predictions")
Curve = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Score:
    """A figure with its 95% interval; the interval may be missing, where its ends are the value."""

    value: float
    low: float
    high: float
    digits: int  # after the point, that are shown

    @property
    def text(self) -> str:
        """The value."""
        return self._text(self.value)

    @property
    def ends(self) -> tuple[str, str]:
        """Those of the interval."""
        return self._text(self.low), self._text(self.high)

    @property
    def said(self) -> str:
        """In words."""
        return f"{self.text} (95% interval {' to '.join(self.ends)})"

    def _text(self, value: float) -> str:
        return figure_text(value, self.digits)


@dataclass(frozen=True)
class Difference(Score):
    """Of two methods' scores."""

    is_tie: bool  # not told apart

    def _text(self, value: float) -> str:
        return signed(value, self.digits)


@dataclass(frozen=True)
class Task:
    """A task's results; `curve` is None where there is no learning curve, as of a test set."""

    name: str
    kind: Kind
    details: TaskDetails
    places: Mapping[str, int]  # of methods among all methods of the run, for colours
    curve: pd.DataFrame | None = None
    updates: Mapping[tuple[str, str], Curve] = field(default_factory=dict)  # training loss by method and seed

    @property
    def title(self) -> str:
        """In headings."""
        return title_of(self.name)

    @property
    def noun(self) -> str:
        """What its examples are."""
        return noun_of(self.name, self.kind)

    @property
    def headline(self) -> str:
        """The figure that methods are judged by first; none where the data defines none, and then no plots."""
        return next(iter(self.details.headlines), "")

    @property
    def figure(self) -> str:
        """Its name."""
        return figure_name(self.headline, self.details.legend[self.headline])

    @property
    def factor(self) -> float:
        """What it is multiplied with before it is shown."""
        return shown_factor(self.details.legend[self.headline])

    @property
    def digits(self) -> int:
        """How many after the point are shown of it."""
        return digits_of(self.details.legend[self.headline])

    @property
    def is_share(self) -> bool:
        """Whether it goes from 0 to 100."""
        return self.details.legend[self.headline].scale in SHARES

    @property
    def sign(self) -> int:
        """1 where the highest score is the best, -1 where the lowest is."""
        return -1 if self.headline and self.details.legend[self.headline].better == "lower" else 1

    @cached_property
    def methods(self) -> list[str]:
        """From the best to the worst."""
        found = [name for name, of in self.details.methods.items() if self.headline in of.figures]
        return sorted(found, key=lambda name: -self.sign * self.details.methods[name].figures[self.headline])

    @property
    def examples(self) -> int:
        """How many were scored, by the groups by length, which are disjoint."""
        groups = next(iter(self.details.methods.values())).groups
        return sum(group.examples for group in next(iter(groups.values()), {}).values())

    def score(self, method: str) -> Score:
        """The mean over seeds."""
        return self._score(self.details.methods[method])

    def baseline(self, name: str) -> Score:
        """Of a baseline."""
        return self._score(self.details.baselines[name])

    def group(self, group: GroupDetails) -> Score | None:
        """Of some examples; None where the figure is not defined on them."""
        return self._score(group) if self.headline in group.figures else None

    @property
    def baselines(self) -> list[str]:
        """Those that have the headline: without probabilities, some figures are not defined."""
        return [name for name, of in self.details.baselines.items() if self.headline in of.figures]

    @property
    def best_baseline(self) -> str | None:
        """The name of the best, if there are any."""
        return max(self.baselines, key=lambda name: self.sign * self.baseline(name).value, default=None)

    def seeds(self, method: str) -> dict[str, float]:
        """The score of each seed."""
        found, name = self.details.methods[method].seeds, self.headline
        return {seed: of.figures[name] * self.factor for seed, of in found.items() if name in of.figures}

    def std(self, method: str) -> float | None:
        """Of the seeds; None of one."""
        found = self.details.methods[method].std.get(self.headline)
        return None if found is None else found * self.factor

    def difference(self, first: str, second: str) -> Difference | None:
        """The first's score less the second's; None where they were not compared."""
        for pair in self.details.comparisons:
            if pair.figure == self.headline and {pair.first, pair.second} == {first, second}:
                factor = self.factor if pair.first == first else -self.factor
                low, high = sorted((factor * pair.low, factor * pair.high))
                is_tie = pair.verdict in (TIE, MODELS_TIE, DIFFER)
                return Difference(factor * pair.difference, low, high, self.digits, is_tie)
        return None

    def is_tie(self, method: str) -> bool:
        """Whether a method is not told apart from the best."""
        found = self.difference(self.methods[0], method)
        return found is not None and found.is_tie

    def is_best(self, method: str) -> bool:
        """Whether a method is the best, or not told apart from it."""
        return method == self.methods[0] or self.is_tie(method)

    def is_above(self, method: str, baseline: str) -> bool:
        """Whether the 95% interval of a method's mean less a baseline's figure, on the same examples, is above 0."""
        ends = self.details.methods[method].ahead.get(baseline)
        return ends is not None and (ends["low"] > 0 if self.sign > 0 else ends["high"] < 0)

    def falls_short(self, method: str, baseline: str) -> bool:
        """Whether a method is not above a baseline even in the mean, or is flagged for it."""
        if self.is_above(method, baseline):
            return False
        ahead = self.sign * (self.score(method).value - self.baseline(baseline).value)
        flags = (of.flags for of in self.details.methods[method].seeds.values())
        return ahead <= 0 or any(f"not_above_{baseline}" in of for of in flags)

    def is_uncertain(self, method: str, baseline: str) -> bool:
        """Whether a method is above a baseline in the mean, but is not shown to be."""
        return not (self.is_above(method, baseline) or self.falls_short(method, baseline))

    def epochs(self, method: str, column: str, factor: float = 1.0) -> dict[str, Curve]:
        """A column of the learning curve, by seed, multiplied with a factor."""
        if self.curve is None or column not in self.curve:
            return {}
        of = self.curve.loc[self.curve["method"] == method].dropna(subset=[column])
        return {
            str(seed): [(float(epoch), factor * value) for epoch, value in rows[["epoch", column]].to_numpy()]
            for seed, rows in of.groupby("seed", sort=False)
        }

    def _score(self, of: Any) -> Score:
        value, ends = of.figures[self.headline], of.intervals.get(self.headline)
        low, high = (ends["low"], ends["high"]) if ends else (value, value)
        return Score(value * self.factor, low * self.factor, high * self.factor, self.digits)


def read_tasks(details: Details, params: Mapping[str, Any], with_curves: bool = True) -> list[Task]:
    """The tasks of scores.json, each test set after the validation set that chose its epoch."""
    grid = build(Grid, params, "finetune")
    scored = [method for of in details.tasks.values() for method in of.methods]  # more than are listed, if out of date
    places = {method: place for place, method in enumerate(dict.fromkeys([*grid.every_method, *scored]))}
    tasks = []
    for name, found in details.tasks.items():
        own = name.removesuffix(ON_TEST) if name not in grid.all_tasks else name
        has_curve = with_curves and own == name
        cells = [(method, str(seed)) for method in grid.methods_of(own) for seed in grid.seeds]
        updates = {cell: read_updates(PREDICTIONS / own / cell[0] / cell[1]) for cell in cells} if has_curve else {}
        curve = read_curve(f"tasks/{own}") if has_curve else None
        tasks.append(Task(name, grid.kind_of(own), found, places, curve, updates))
    return tasks


def judged(tasks: Sequence[Task]) -> list[Task]:
    """Those that a run is judged by: test sets, and validation sets of tasks without one."""
    names = {task.name for task in tasks}
    return [task for task in tasks if on_test(task.name) not in names and task.methods]


def most_seeds(tasks: Sequence[Task]) -> int:
    """From how many seeds a method was trained, the most of any; 0 without scores."""
    return max((len(task.seeds(method)) for task in tasks for method in task.methods), default=0)


def read_curve(name: str) -> pd.DataFrame:
    """A learning curve: `epoch`, of a task `method` and `seed` (text), and figures, NaN where there is none."""
    path = REPORTS / "curves" / f"{name}.csv"
    return pd.read_csv(path, dtype={"method": str, "seed": str}, keep_default_na=False, na_values=[""])


def mean_curve(curves: Sequence[Curve]) -> list[tuple[float, float]]:
    """The mean of several curves at each of their points."""
    at: dict[float, list[float]] = {}
    for curve in curves:
        for x, y in curve:
            at.setdefault(x, []).append(y)
    return [(x, sum(ys) / len(ys)) for x, ys in sorted(at.items())]


def thinned(curve: Curve, most: int) -> Curve:
    """Means of neighbours, so that at most so many points are left."""
    step = -(-len(curve) // most) or 1
    return [tuple(np.mean(curve[i : i + step], axis=0)) for i in range(0, len(curve), step)]
