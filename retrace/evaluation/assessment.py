"""Scores a task's methods and seeds from saved predictions: figures, intervals, comparisons and flags."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from retrace.evaluation.classification import ClassificationTask
from retrace.evaluation.flags import decision_flags, figure_flags, loss_flags, overlap_flags
from retrace.evaluation.outcomes import Scoring
from retrace.evaluation.question_answering import QuestionAnsweringTask
from retrace.evaluation.records import BaselineDetails, GroupDetails, MethodDetails, SeedDetails, TaskDetails
from retrace.evaluation.settings import MetricSettings
from retrace.results.grid import Kind
from retrace.results.predictions import PredictedEpoch, kept_epoch
from retrace.statistics.comparisons import compare, difference, flag_unless_better
from retrace.statistics.intervals import Scored, intervals
from retrace.statistics.scales import Flags, loss_on

SCRATCH = "scratch"  # the method without pretraining, a baseline for the others
EVERY = slice(None)
OF_MODELS = "for these models; one seed says nothing about the methods"
AnyTask = ClassificationTask | QuestionAnsweringTask
KINDS: Mapping[Kind, type[AnyTask]] = {
    "classification": ClassificationTask,
    "question_answering": QuestionAnsweringTask,
}


@dataclass(frozen=True)
class MethodRun:
    """One method's predictions with one seed, per epoch."""

    method: str
    seed: int
    epochs: Sequence[PredictedEpoch]

    @property
    def name(self) -> str:
        """Such as "full 1"."""
        return f"{self.method} {self.seed}"


def assess(task: AnyTask, scoring: Scoring, runs: Sequence[MethodRun], settings: MetricSettings) -> TaskDetails:
    """Score the baselines, and every run before training and at the epoch that was kept."""
    return _Assessor(task, scoring, runs, settings).details()


class _Assessor:
    """The figures of baselines, of runs, and of runs before training, by name."""

    def __init__(self, task: AnyTask, scoring: Scoring, runs: Sequence[MethodRun], settings: MetricSettings) -> None:
        self._task, self._scoring, self._settings = task, scoring, settings
        self._methods: dict[str, list[MethodRun]] = {}
        for run in runs:
            self._methods.setdefault(run.method, []).append(run)
        self._kept: dict[str, Any] = {run.name: task.outcome(kept_epoch(run.epochs).rows) for run in runs}
        self._scored = self._score(scoring, task.baselines | self._kept)
        self._baselines = {name: self._scored[name] for name in task.baselines}
        computed = list(dict.fromkeys(name for run in runs for name in self._scored[run.name].drawn))  # with intervals
        self._headlines = [name for name in task.headlines if name in computed] or computed[:1]
        self._headline = next(iter(self._headlines), "")  # the data may lack a class that the only metric needs
        self._headline_scoring = scoring.of(self._headlines)
        # Before training, only the headlines are resampled: trained models are compared with these.
        before = {run.name: task.outcome(run.epochs[0].rows) for run in runs}
        drawn = self._score(self._headline_scoring, before)
        self._before = {name: replace(drawn[name], figures=scoring.score(outcome)) for name, outcome in before.items()}

    def _score(
        self, scoring: Scoring, outcomes: Mapping[str, Any], which: np.ndarray | slice = EVERY
    ) -> dict[str, Scored]:
        """The figures of outcomes of some of the examples, (N,), bool."""
        # In a group with one text, examples are not independent either, so `clusters_of` does not decide.
        clusters = None if self._task.clusters is None else pd.factorize(self._task.clusters[which])[0]
        return scoring.scored(outcomes, self._settings.bootstrap_samples, self._settings.seed, clusters)

    def details(self) -> TaskDetails:
        task, scoring = self._task, self._scoring
        return TaskDetails(
            headlines=self._headlines,
            legend={**scoring.legend, **loss_on(task.split)},
            baselines={name: BaselineDetails(figures=dict(scored.figures), intervals=intervals([scored]))
                       for name, scored in self._baselines.items()},
            methods={method: self._method(method) for method in self._methods},
            comparisons=compare({method: self._seeds(method) for method in self._methods}, scoring.legend),
            notes=scoring.notes(next(iter(self._kept.values()))) | task.notes,
            flags=overlap_flags(task),
        )  # fmt: skip

    def _method(self, method: str) -> MethodDetails:
        runs, scored = self._methods[method], self._seeds(method)
        seeds = {str(run.seed): self._seed(run) for run in runs}
        table = pd.DataFrame([seed.figures for seed in seeds.values()]).dropna(axis="columns")  # figures of all seeds
        flags: Flags = {}
        if SCRATCH in self._methods and method != SCRATCH:
            flags = self._not_above(scored, self._seeds(SCRATCH), SCRATCH, OF_MODELS)
        return MethodDetails(
            figures=table.mean().to_dict(),
            std=_deviations(table) if len(runs) > 1 else {},
            intervals=intervals(scored),
            intervals_of="examples and fine-tuning seeds" if len(runs) > 1 else "examples (one seed)",
            groups={kind: {name: self._group(which, runs) for name, which in groups.items()}
                    for kind, groups in self._task.groups.items()},
            flags=flags,
            ahead={name: difference(self._headline, scored, [other] * len(runs), are_paired=True).interval
                   for name, other in self._baselines.items()
                   if self._headline in other.drawn.keys() & scored[0].drawn.keys()},
            seeds=seeds,
            breakdown=self._task.breakdown([self._kept[run.name] for run in runs]),
        )  # fmt: skip

    def _seed(self, run: MethodRun) -> SeedDetails:
        kept, scored, before = kept_epoch(run.epochs), self._scored[run.name], self._before[run.name]
        (loss,) = loss_on(self._task.split)
        flags = decision_flags(self._kept[run.name]) | figure_flags(scored.figures, self._scoring.scales)
        for name, other in (self._baselines | {"before_training": before}).items():
            flags |= self._not_above([scored], [other], name)
        if self._task.split == "dev":  # a test set has no learning curve
            flags |= loss_flags([(epoch.training_loss, epoch.validation_loss) for epoch in run.epochs])
        return SeedDetails(
            epoch=kept.number,
            figures={loss: kept.validation_loss} | dict(scored.figures),
            intervals=intervals([scored]),
            before={loss: run.epochs[0].validation_loss} | dict(before.figures),
            flags=flags,
        )

    def _group(self, which: np.ndarray, runs: Sequence[MethodRun]) -> GroupDetails:
        """The headline figures of some of the examples, (N,), bool."""
        parts = {run.name: self._kept[run.name].part(which) for run in runs}
        scored = _of_all([*self._score(self._headline_scoring, parts, which).values()])
        found = intervals(scored)
        names = [name for name in self._headlines if name in found]
        return GroupDetails(
            examples=int(which.sum()),
            figures={name: float(np.mean([seed.figures[name] for seed in scored])) for name in names},
            intervals={name: found[name] for name in names},
        )

    def _seeds(self, method: str) -> list[Scored]:
        return _of_all([self._scored[run.name] for run in self._methods[method]])

    def _not_above(self, model: Sequence[Scored], other: Sequence[Scored], name: str, note: str = "") -> Flags:
        """A flag unless the first headline is better than another model's; `note` is for a method with one seed.

        A flag is a warning: we would rather miss a weak model than flag one that has learned.
        """
        figure = self._headline
        if any(figure not in side[0].drawn for side in (model, other)):
            return {}
        if (better := self._scoring.legend[figure].better) == "neither":
            return {}
        found = difference(figure, model, other, are_alike=True)
        value, below = (float(np.mean([seed.figures[figure] for seed in side])) for side in (model, other))
        note = note if found.is_of_models else ""
        return flag_unless_better(figure, name, value, below, found.interval, better, note)


def _of_all(seeds: Sequence[Scored]) -> list[Scored]:
    """The seeds with only the resampled figures that all have, as a mean over some of the seeds would be biased."""
    shared = set.intersection(*(set(seed.drawn) for seed in seeds))
    return [replace(seed, drawn={name: seed.drawn[name] for name in seed.drawn if name in shared}) for seed in seeds]


def _deviations(seeds: pd.DataFrame) -> dict[str, float]:
    """The standard deviation of each column; 0 where all rows are equal, which pandas may give as 1e-16."""
    return seeds.std().mask(seeds.eq(seeds.iloc[0]).all(), 0.0).to_dict()
