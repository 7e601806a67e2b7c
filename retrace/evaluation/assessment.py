"""A task's methods and seeds, scored from saved predictions: figures, intervals, comparisons and flags."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd

from retrace.evaluation.classification import ClassificationTask
from retrace.evaluation.flags import figure_flags, loss_flags, overlap_flags, validation_flags
from retrace.evaluation.outcomes import MethodRun
from retrace.evaluation.question_answering import QuestionAnsweringTask
from retrace.evaluation.records import (
    AnswerBreakdown,
    ClassBreakdown,
    Intervals,
    MethodDetails,
    MethodMetrics,
    SeedDetails,
    SeedMetrics,
    TaskDetails,
    TaskMetrics,
)
from retrace.evaluation.scoring import Scoring
from retrace.evaluation.settings import MetricSettings
from retrace.results.grid import Kind
from retrace.statistics.comparisons import Candidate, Comparison, compare, difference, flag_unless_better
from retrace.statistics.intervals import Figures, Resampled, resample, with_seeds
from retrace.statistics.scales import Flags

SCRATCH = "scratch"  # the method without pretraining, the baseline of the others
OF_MODELS = "of these models; one seed does not tell the methods apart"


class ScoredTask(Protocol):
    """What scoring needs to know of a task."""

    headlines: tuple[str, ...]  # the figures that methods are judged by, the most important first
    groups: Mapping[str, np.ndarray]  # groups of examples that are scored separately: name → (N,), bool
    shared: np.ndarray  # (N,), bool: examples that are in the training data too
    split: str  # dev, which chooses the epoch, or test
    shared_with_dev: np.ndarray  # (N,), bool: test examples that are in the validation data too
    given: np.ndarray  # (N,), bool: examples that the training data gives away
    given_how: str  # in words
    notes: Mapping[str, str]  # on baselines, by name

    def outcome(self, rows: pd.DataFrame) -> Any:
        """The decisions in a run's predictions."""
        ...

    def baselines(self) -> Mapping[str, Any]:
        """Outcomes of the baselines."""
        ...

    def flags(self, outcome: Any) -> Flags:
        """Signs in the decisions that the model has learned nothing."""
        ...

    def breakdown(self, outcome: Any) -> ClassBreakdown | AnswerBreakdown:
        """The decisions by class, or counts of answers."""
        ...


KINDS: Mapping[Kind, type[ClassificationTask] | type[QuestionAnsweringTask]] = {
    "classification": ClassificationTask,
    "question_answering": QuestionAnsweringTask,
}


@dataclass(frozen=True)
class Assessment:
    """The results of a task."""

    details: TaskDetails
    flags: dict[str, Flags]  # by "full 1" (method and seed), "full" or "data"


def assess(task: ScoredTask, scoring: Scoring, runs: Sequence[MethodRun[Any]], settings: MetricSettings) -> Assessment:
    """Score every run at the epoch that was kept, the baselines, and the models before training."""
    return _Assessor(task, scoring, runs, settings).assessment()


class _Assessor:
    """The figures of every outcome, plain and resampled.

    Outcomes have names: that of a baseline, "full 1" for a run, and "full 1 before" for the same before training.
    """

    def __init__(
        self, task: ScoredTask, scoring: Scoring, runs: Sequence[MethodRun[Any]], settings: MetricSettings
    ) -> None:
        self._task, self._scoring, self._runs, self._settings = task, scoring, runs, settings
        self._methods: dict[str, list[MethodRun[Any]]] = {}
        for run in runs:
            self._methods.setdefault(run.method, []).append(run)
        self._baselines = dict(task.baselines())
        outcomes = self._baselines | {_name(run): run.kept.outcome for run in runs}
        outcomes |= {_before(run): run.before.outcome for run in runs}
        self._figures = {name: scoring.score(outcome) for name, outcome in outcomes.items()}
        self._headlines = _headlines(task, scoring.resampled(runs[0].kept.outcome))
        # Of the models before training only what the trained ones are held against.
        untrained = {_before(run) for run in runs}
        self._resampled = {
            name: scoring.resampled(outcome, set(self._headlines) if name in untrained else ())
            for name, outcome in outcomes.items()
        }
        self._drawn = resample(self._resampled, len(task.shared), settings.bootstrap_samples, settings.seed)
        self._shares = {name: scoring.shares(outcome) for name, outcome in outcomes.items()}
        self._fewest = runs[0].kept.outcome.fewest
        self._by_method = {method: self._mean_intervals(of) for method, of in self._methods.items()}

    def assessment(self) -> Assessment:
        flags = {_name(run): self._run_flags(run) for run in self._runs}
        flags |= {method: self._scratch_flags(method) for method in self._methods if method != SCRATCH}
        flags["data"] = overlap_flags(self._task.shared, self._task.given, self._task.split, self._task.given_how)
        flags["data"] |= validation_flags(self._task.shared_with_dev)
        details = TaskDetails(
            headlines=self._headlines,
            scales=self._scoring.scales,
            better=self._scoring.better,
            metrics=TaskMetrics(
                baselines={name: self._figures[name] for name in self._baselines},
                methods={method: self._method_metrics(method) for method in self._methods},
            ),
            notes=self._scoring.notes(self._runs[0].kept.outcome) | dict(self._task.notes),
            baselines={name: self._intervals(name) for name in self._baselines},
            methods={method: self._method_details(method) for method in self._methods},
            comparisons=self._comparisons(),
        )
        return Assessment(details, {name: found for name, found in flags.items() if found})

    def _method_metrics(self, method: str) -> MethodMetrics:
        seeds = {
            str(run.seed): SeedMetrics(
                epoch=run.kept.number, figures={"validation_loss": run.kept.validation_loss} | self._figures[_name(run)]
            )
            for run in self._methods[method]
        }
        table = pd.DataFrame([of.figures for of in seeds.values()])
        return MethodMetrics(
            seeds=seeds,
            mean=table.mean().to_dict(),
            std=table.std().to_dict() if len(seeds) > 1 else {},
            intervals={name: self._by_method[method][name] for name in self._headlines},
        )

    def _method_details(self, method: str) -> MethodDetails:
        has_seeds = len(self._methods[method]) > 1
        return MethodDetails(
            intervals=self._by_method[method],
            intervals_of="examples and seeds" if has_seeds else "examples, as there is one seed",
            seeds={str(run.seed): self._seed_details(run) for run in self._methods[method]},
        )

    def _seed_details(self, run: MethodRun[Any]) -> SeedDetails:
        resampled = self._resampled[_name(run)]
        groups = {name: _finite(resampled(which[None].astype(float))) | {"examples": int(which.sum())}
                  for name, which in self._groups().items()}  # fmt: skip
        return SeedDetails(
            intervals=self._intervals(_name(run)),
            before=self._figures[_before(run)],
            groups=groups,
            breakdown=self._task.breakdown(run.kept.outcome),
        )

    def _groups(self) -> dict[str, np.ndarray]:
        kept = ~self._task.shared
        without = {"not in the training data": kept} if self._task.shared.any() and kept.any() else {}
        return dict(self._task.groups) | without

    def _intervals(self, name: str) -> Intervals:
        return self._scoring.intervals(self._figures[name], self._shares[name], self._drawn[name], self._fewest)

    def _mean_intervals(self, runs: Sequence[MethodRun[Any]]) -> Intervals:
        """Of the mean over seeds, for the choice of examples and of seeds, with that of examples alone beside it.

        One seed tells nothing about others: its interval is for examples alone.
        """
        names = [_name(run) for run in runs]
        found = {}
        for figure in self._drawn[names[0]]:
            by_seed = [self._figures[name][figure] for name in names]
            shares = [self._shares[name][figure] for name in names if figure in self._shares[name]]
            drawn = np.mean([self._drawn[name][figure] for name in names], axis=0)
            found[figure] = of_examples = self._scoring.interval(
                figure, float(np.mean(by_seed)), shares if len(shares) == len(names) else [], drawn, self._fewest
            )
            if len(names) > 1:
                found[figure] = with_seeds(of_examples, by_seed, self._scoring.ends(figure))
                found[figure] |= {f"{end}_examples": at for end, at in of_examples.items()}
        return found

    def _candidate(self, *names: str) -> Candidate:
        """Outcomes by name, the seeds of one method."""
        return Candidate(
            [self._figures[name] for name in names],
            [self._drawn[name] for name in names],
            [self._shares[name] for name in names],
            self._fewest,
        )

    def _method(self, method: str) -> Candidate:
        return self._candidate(*(_name(run) for run in self._methods[method]))

    def _comparisons(self) -> list[Comparison]:
        return compare({method: self._method(method) for method in self._methods}, self._scoring.better)

    def _run_flags(self, run: MethodRun[Any]) -> Flags:
        name = _name(run)
        flags = self._task.flags(run.kept.outcome) | figure_flags(self._figures[name], self._scoring.scales)
        for other, shown in [*((b, b) for b in self._baselines), (_before(run), "before_training")]:
            flags |= self._not_above(self._candidate(name), self._candidate(other), shown)
        if self._task.split == "test":
            return flags  # predictions before and after training are no learning curve
        return flags | loss_flags([(epoch.training_loss, epoch.validation_loss) for epoch in run.epochs])

    def _scratch_flags(self, method: str) -> Flags:
        """No better than without pretraining, over all seeds."""
        if SCRATCH not in self._methods:
            return {}
        return self._not_above(self._method(method), self._method(SCRATCH), SCRATCH, OF_MODELS)

    def _not_above(self, model: Candidate, other: Candidate, shown: str, note: str = "") -> Flags:
        """By the first headline; `note` is added where one seed stands for a method.

        A flag is a warning: better too few than one for a model that has learned.
        """
        if not self._headlines:  # the data may lack a class that the only metric needs
            return {}
        figure = self._headlines[0]
        way = self._scoring.better[figure]
        if way == "neither" or any(figure not in side.drawn[0] for side in (model, other)):
            return {}
        found = difference(figure, model, other, are_alike=True)
        return flag_unless_better(
            figure, shown, _mean(model, figure), _mean(other, figure), found.interval, way,
            note if found.is_of_models else "",
        )  # fmt: skip


def _mean(candidate: Candidate, figure: str) -> float:
    return float(np.mean([figures[figure] for figures in candidate.figures]))


def _headlines(task: ScoredTask, resampled: Resampled) -> list[str]:
    """The task's headlines that are computed, or the first figure if none is."""
    given = list(resampled(np.ones((1, len(task.shared)))))
    return [name for name in task.headlines if name in given] or given[:1]


def _name(run: MethodRun[Any]) -> str:
    return f"{run.method} {run.seed}"


def _before(run: MethodRun[Any]) -> str:
    return f"{_name(run)} before"


def _finite(figures: Figures) -> dict[str, float]:
    """The figures of one row of weights that are defined."""
    return {name: float(values[0]) for name, values in figures.items() if np.isfinite(values[0])}
