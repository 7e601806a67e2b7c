"""A task's methods and seeds, scored from saved predictions: figures, intervals, comparisons and flags."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from retrace.evaluation.classification import ClassificationTask
from retrace.evaluation.flags import decision_flags, figure_flags, loss_flags, overlap_flags
from retrace.evaluation.outcomes import ScoredTask
from retrace.evaluation.question_answering import QuestionAnsweringTask
from retrace.evaluation.records import (
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
from retrace.results.predictions import Epoch, kept_epoch
from retrace.statistics.comparisons import compare, difference, flag_unless_better
from retrace.statistics.intervals import Figures, Scored, intervals, resample
from retrace.statistics.scales import Flags

SCRATCH = "scratch"  # the method without pretraining, the baseline of the others
OF_MODELS = "of these models; one seed does not tell the methods apart"
KINDS: Mapping[Kind, type[ClassificationTask] | type[QuestionAnsweringTask]] = {
    "classification": ClassificationTask,
    "question_answering": QuestionAnsweringTask,
}


@dataclass(frozen=True)
class MethodRun:
    """One method's predictions with one seed, per epoch."""

    method: str
    seed: int
    epochs: Sequence[Epoch]

    @property
    def name(self) -> str:
        """As in "full 1"."""
        return f"{self.method} {self.seed}"

    @property
    def name_before(self) -> str:
        """What the model before training is called."""
        return f"{self.name} before"

    @property
    def kept(self) -> Epoch:
        """The epoch that is scored."""
        return kept_epoch(self.epochs)


@dataclass(frozen=True)
class Assessment:
    """The results of a task."""

    details: TaskDetails
    flags: dict[str, Flags]  # by "full 1" (method and seed), "full" or "data"


def assess(task: ScoredTask, scoring: Scoring, runs: Sequence[MethodRun], settings: MetricSettings) -> Assessment:
    """Score every run at the epoch that was kept, the baselines, and the models before training."""
    return _Assessor(task, scoring, runs, settings).assessment()


class _Assessor:
    """The figures of every outcome, by name: those of baselines, of runs, and of these before training."""

    def __init__(self, task: ScoredTask, scoring: Scoring, runs: Sequence[MethodRun], settings: MetricSettings) -> None:
        self._task, self._scoring, self._runs = task, scoring, runs
        self._methods: dict[str, list[MethodRun]] = {}
        for run in runs:
            self._methods.setdefault(run.method, []).append(run)
        self._baselines = task.baselines()
        self._kept = {run.name: task.outcome(run.kept.rows) for run in runs}
        before = {run.name_before: task.outcome(run.epochs[0].rows) for run in runs}
        outcomes = self._baselines | self._kept | before
        first = self._kept[runs[0].name]
        computed = list(scoring.resampled(first)(np.ones((1, len(task.shared)))))
        self._headlines = [name for name in task.headlines if name in computed] or computed[:1]
        # Of the models before training only what the trained ones are held against.
        self._resampled = {
            name: scoring.resampled(outcome, self._headlines if name in before else ())
            for name, outcome in outcomes.items()
        }
        drawn = resample(self._resampled, len(task.shared), settings.bootstrap_samples, settings.seed)
        self._scored = {
            name: Scored(scoring.score(outcome), drawn[name], scoring.shares(outcome), first.fewest)
            for name, outcome in outcomes.items()
        }

    def assessment(self) -> Assessment:
        task, scoring = self._task, self._scoring
        flags = {run.name: self._run_flags(run) for run in self._runs}
        if SCRATCH in self._methods:
            scratch, others = self._seeds(SCRATCH), [method for method in self._methods if method != SCRATCH]
            flags |= {method: self._not_above(self._seeds(method), scratch, SCRATCH, OF_MODELS) for method in others}
        flags["data"] = overlap_flags(task)
        methods = {method: self._details(method) for method in self._methods}
        details = TaskDetails(
            headlines=self._headlines,
            scales=scoring.scales,
            better=scoring.better,
            metrics=TaskMetrics(
                baselines={name: dict(self._scored[name].figures) for name in self._baselines},
                methods={method: self._metrics(method, found.intervals) for method, found in methods.items()},
            ),
            notes=scoring.notes(self._kept[self._runs[0].name]) | dict(task.notes),
            baselines={name: self._intervals(name) for name in self._baselines},
            methods=methods,
            comparisons=compare({method: self._seeds(method) for method in self._methods}, scoring.better),
        )
        return Assessment(details, {name: found for name, found in flags.items() if found})

    def _metrics(self, method: str, of_method: Intervals) -> MethodMetrics:
        seeds = {
            str(run.seed): SeedMetrics(
                epoch=run.kept.number,
                figures={"validation_loss": run.kept.validation_loss} | dict(self._scored[run.name].figures),
            )
            for run in self._methods[method]
        }
        table = pd.DataFrame([seed.figures for seed in seeds.values()])
        return MethodMetrics(
            seeds=seeds,
            mean=table.mean().to_dict(),
            std=table.std().to_dict() if len(seeds) > 1 else {},
            intervals={name: of_method[name] for name in self._headlines},
        )

    def _details(self, method: str) -> MethodDetails:
        runs = self._methods[method]
        return MethodDetails(
            intervals=self._intervals(*(run.name for run in runs)),
            intervals_of="examples and seeds" if len(runs) > 1 else "examples, as there is one seed",
            seeds={str(run.seed): self._seed_details(run) for run in runs},
        )

    def _seed_details(self, run: MethodRun) -> SeedDetails:
        task, resampled, groups = self._task, self._resampled[run.name], dict(self._task.groups)
        if task.shared.any() and not task.shared.all():
            groups["not in the training data"] = ~task.shared
        return SeedDetails(
            intervals=self._intervals(run.name),
            before=dict(self._scored[run.name_before].figures),
            groups={name: _finite(resampled(which[None].astype(float))) | {"examples": int(which.sum())}
                    for name, which in groups.items()},
            breakdown=task.breakdown(self._kept[run.name]),
        )  # fmt: skip

    def _intervals(self, *names: str) -> Intervals:
        return intervals([self._scored[name] for name in names], self._scoring.ends)

    def _seeds(self, method: str) -> list[Scored]:
        return [self._scored[run.name] for run in self._methods[method]]

    def _run_flags(self, run: MethodRun) -> Flags:
        scored = self._scored[run.name]
        flags = decision_flags(self._kept[run.name]) | figure_flags(scored.figures, self._scoring.scales)
        for baseline in self._baselines:
            flags |= self._not_above([scored], [self._scored[baseline]], baseline)
        flags |= self._not_above([scored], [self._scored[run.name_before]], "before_training")
        if self._task.split == "test":
            return flags  # predictions before and after training are no learning curve
        return flags | loss_flags([(epoch.training_loss, epoch.validation_loss) for epoch in run.epochs])

    def _not_above(self, model: Sequence[Scored], other: Sequence[Scored], name: str, note: str = "") -> Flags:
        """A flag unless the first headline is above that of another; `note` is added where a method has one seed.

        A flag is a warning: better too few than one for a model that has learned.
        """
        if not self._headlines:  # the data may lack a class that the only metric needs
            return {}
        figure = self._headlines[0]
        better = self._scoring.better[figure]
        if better == "neither" or any(figure not in side[0].drawn for side in (model, other)):
            return {}
        found = difference(figure, model, other, are_alike=True)
        value, below = (float(np.mean([seed.figures[figure] for seed in side])) for side in (model, other))
        return flag_unless_better(
            figure, name, value, below, found.interval, better, note if found.is_of_models else ""
        )


def _finite(figures: Figures) -> dict[str, float]:
    """The figures of one row of weights that are defined."""
    return {name: float(values[0]) for name, values in figures.items() if np.isfinite(values[0])}
