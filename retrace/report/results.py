"""The results as the page shows them: shares as percentages, methods from the best to the worst."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd

from retrace.core.paths import on_test, task_and_part
from retrace.core.records import RunRecord
from retrace.evaluation.records import BaselineDetails, Details, GroupDetails, MethodDetails, TaskDetails
from retrace.report.names import noun_of, shown, shown_factor, shown_signed, title_of
from retrace.report.page import REPORTS
from retrace.results.grid import PREDICTIONS, Grid, Kind
from retrace.results.predictions import read_updates
from retrace.statistics.comparisons import DIFFER, MODELS_TIE, TIE
from retrace.statistics.scales import CURVES, SCALES, Figure, Legend

Curve = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Score:
    """A figure, or the difference of two, with its 95% interval; without one, both ends are the value."""

    value: float
    low: float
    high: float
    text: str  # the value as printed
    ends: tuple[str, str]  # of the interval as printed
    is_tie: bool = False  # of a difference: not shown to differ from 0

    @property
    def said(self) -> str:
        """The value and its interval in words."""
        return f"{self.text} (95% interval {' to '.join(self.ends)})"


@dataclass(frozen=True)
class TaskResults:
    """A task's results; a test set has no learning curve."""

    name: str
    kind: Kind
    details: TaskDetails
    places: Mapping[str, int]  # each method's place among all methods of the run, for its colour
    curve: pd.DataFrame | None = None
    updates: Mapping[tuple[str, str], Curve] = field(default_factory=dict)  # training loss by method and seed
    has_rdrop: bool = False  # whether R-Drop's weighted divergence is in the training loss
    keeps_last: bool = False  # whether the last or only epoch was kept, whatever its validation loss

    @property
    def title(self) -> str:
        """The name in headings."""
        return title_of(self.name)

    @property
    def noun(self) -> str:
        """What the examples are called."""
        return noun_of(self.name, self.kind)

    @property
    def called(self) -> str:
        """The examples as sentences outside of the task's own section call them."""
        return f"{self.noun} of the test set" if task_and_part(self.name)[1] == "test" else self.noun

    @property
    def headline(self) -> str:
        """The key of the figure that methods are judged by first; "" where the data defines none."""
        return next(iter(self.details.headlines), "")

    @property
    def figure(self) -> Figure:
        """The scale, direction and display name of the headline figure."""
        return self.details.legend[self.headline]

    @property
    def curve_legend(self) -> Legend:
        """The scale, direction and display name of each column of the learning curve."""
        loss = CURVES["training_loss"]
        if self.has_rdrop:
            loss = replace(loss, name=f"{loss.name} with R-Drop’s divergence")
        return CURVES | self.details.legend | {"training_loss": loss}

    @property
    def sign(self) -> int:
        """1 if a higher headline is better, -1 if a lower one is."""
        return -1 if self.figure.better == "lower" else 1

    @property
    def weight(self) -> float:
        """A factor that makes headlines on different scales comparable: more is better, and every scale is 100 wide."""
        low, high = SCALES[self.figure.scale].ends
        return self.sign * (100 / (shown_factor(self.figure) * (high - low)) if math.isfinite(high - low) else 1)

    @cached_property
    def methods(self) -> list[str]:
        """The methods that have the headline, from the best to the worst."""
        found = {name: method.figures[self.headline] for name, method in self.details.methods.items()
                 if self.headline in method.figures}  # fmt: skip
        return sorted(found, key=lambda name: -self.sign * found[name])

    @property
    def baselines(self) -> list[str]:
        """The baselines that have the headline; some lack it, as it may need probabilities."""
        return [name for name, baseline in self.details.baselines.items() if self.headline in baseline.figures]

    @property
    def examples(self) -> int:
        """How many were scored: the sum over the groups by length, which are disjoint."""
        first = next(iter(self.details.methods.values()))
        return sum(group.examples for group in first.groups.get("length", {}).values())

    def score(self, method: str) -> Score:
        """A method's headline, the mean over seeds."""
        return self.score_of(self.details.methods[method])

    def baseline(self, name: str) -> Score:
        """A baseline's headline."""
        return self.score_of(self.details.baselines[name])

    def score_of(self, details: MethodDetails | BaselineDetails | GroupDetails) -> Score:
        """The headline of a method, of a baseline, or of some examples."""
        value = details.figures[self.headline]
        interval = details.intervals.get(self.headline, {"low": value, "high": value})
        return self._score((value, interval["low"], interval["high"]), shown)

    def seeds(self, method: str) -> list[float]:
        """The headline of each seed."""
        found = [seed.figures for seed in self.details.methods[method].seeds.values()]
        return [shown_factor(self.figure) * figures[self.headline] for figures in found if self.headline in figures]

    def std(self, method: str) -> float | None:
        """The headline's standard deviation over seeds; None with one seed."""
        found = self.details.methods[method].std.get(self.headline)
        return None if found is None else found * shown_factor(self.figure)

    def difference(self, first: str, second: str) -> Score | None:
        """The first method's headline less the second's; None if they were not compared."""
        for pair in self.details.comparisons:
            if pair.figure == self.headline and {pair.first, pair.second} == {first, second}:
                sign = 1 if pair.first == first else -1
                low, high = sorted((sign * pair.low, sign * pair.high))
                is_tie = pair.verdict in (TIE, MODELS_TIE, DIFFER)
                return self._score((sign * pair.difference, low, high), shown_signed, is_tie)
        return None

    def _score(self, values: Sequence[float], as_text: Callable[[Figure, float], str], is_tie: bool = False) -> Score:
        """A value and the ends of its interval, on the scale on which they are printed, and as they are printed."""
        text, low, high = (as_text(self.figure, each) for each in values)
        return Score(*(shown_factor(self.figure) * each for each in values), text=text, ends=(low, high), is_tie=is_tie)

    def is_tie(self, method: str) -> bool:
        """Whether a method ties with the best."""
        found = self.difference(self.methods[0], method)
        return found is not None and found.is_tie

    def is_best(self, method: str) -> bool:
        """Whether a method is the best or ties with it."""
        return method == self.methods[0] or self.is_tie(method)

    def against(self, method: str, baseline: str) -> Literal["above", "below", "not above", "uncertain"]:
        """Whether a method is above a baseline on the same examples.

        "above" or "below": by the whole 95% interval of the difference. "not above": the score itself is no better.
        "uncertain": the score is better, but not by the whole interval.
        """
        ends = self.details.methods[method].ahead.get(baseline)
        if ends is not None:
            low, high = sorted(self.sign * end for end in (ends["low"], ends["high"]))
            if low > 0 or high < 0:
                return "above" if low > 0 else "below"
        ahead = self.sign * (self.score(method).value - self.baseline(baseline).value)
        return "not above" if ahead <= 0 else "uncertain"

    def epochs(self, column: str) -> Any:
        """A column of the learning curve: a data frame with epochs as rows, methods and seeds as columns; or empty."""
        if self.curve is None or column not in self.curve:
            return pd.DataFrame()
        by_run = self.curve.set_index(["epoch", "method", "seed"])[column].unstack(["method", "seed"], sort=False)
        return by_run.dropna(how="all")


def read_tasks(details: Details, params: Mapping[str, Any], with_curves: bool = True) -> list[TaskResults]:
    """The tasks of scores.json, each test set after the validation set that chose its epoch."""
    grid = Grid.read(params)
    scored = [method for task in details.tasks.values() for method in task.methods]  # also delisted ones
    places = {method: place for place, method in enumerate(dict.fromkeys([*grid.every_method, *scored]))}
    tasks = []
    for name, found in details.tasks.items():
        own, part = task_and_part(name)
        curve, updates = None, {}
        if with_curves and part == "dev":
            curve = read_curve(f"tasks/{own}")
            cells = grid.cells_of(own)
            updates = {(cell.method, str(cell.seed)): read_updates(PREDICTIONS / cell.path) for cell in cells}
        settings, is_only = params.get(own, {}), curve is not None and set(curve["epoch"]) <= {0, 1}
        has_rdrop, keeps_last = bool(settings.get("rdrop")), is_only or settings.get("checkpoint") == "last"
        tasks.append(TaskResults(name, grid.kind_of(own), found, places, curve, updates, has_rdrop, keeps_last))
    return tasks


def judged(tasks: Sequence[TaskResults]) -> list[TaskResults]:
    """The tasks that a run is judged by: test sets, and validation sets of tasks without one."""
    names = {task.name for task in tasks}
    return [task for task in tasks if on_test(task.name) not in names and task.methods]


def most_seeds(tasks: Sequence[TaskResults]) -> int:
    """The largest number of seeds of any method; 0 without scores."""
    return max((len(task.seeds(method)) for task in tasks for method in task.methods), default=0)


def seconds_of(runs: Mapping[str, RunRecord]) -> dict[str, float]:
    """Seconds of fine-tuning by method: sums over tasks, means over seeds."""
    return _tuned(runs).pivot_table("seconds", "method", "seed", aggfunc="sum").mean(axis=1).to_dict()


def shares_of(runs: Mapping[str, RunRecord]) -> dict[str, float]:
    """The percentage of weights that each method trains, the largest over tasks."""
    return _tuned(runs).pivot_table("share", "method", "seed", aggfunc="max").max(axis=1).to_dict()


def _tuned(runs: Mapping[str, RunRecord]) -> pd.DataFrame:
    """Task, method, seed, seconds and percentage of trained weights of each fine-tuning run."""
    rows = [
        (*name.split(), record.seconds, 100 * record.trained_parameters / record.parameters)
        for name, record in runs.items()
        if name != "pretrain"
    ]
    return pd.DataFrame(rows, columns=["task", "method", "seed", "seconds", "share"])


def read_curve(name: str) -> pd.DataFrame:
    """A learning curve: `epoch`, for a task `method` and `seed` (text), and figures, NaN if there is none."""
    path = REPORTS / "curves" / f"{name}.csv"
    return pd.read_csv(path, dtype={"method": str, "seed": str}, keep_default_na=False, na_values=[""])


def curve_of(values: Any) -> Curve:
    """The known values of a pandas series, each after its index."""
    return list(values.dropna().items())


def thinned(curve: Curve, most: int) -> Curve:
    """At most `most` points, each the mean of neighbours."""
    step = max(1, math.ceil(len(curve) / most))
    return [tuple(np.mean(curve[i : i + step], axis=0)) for i in range(0, len(curve), step)]
