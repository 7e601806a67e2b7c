"""Learning curves as comma-separated text, which DVC plots.

A task's methods and seeds, scored: figures, intervals, comparisons and flags, all from saved predictions.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from retrace.evaluation.flags import figure_flags, loss_flags, overlap_flags, validation_flags
from retrace.evaluation.outcomes import Trial
from retrace.evaluation.scoring import Scoring
from retrace.evaluation.settings import MetricSettings
from retrace.statistics.comparisons import Candidate, Flags, compare, difference, not_above
from retrace.statistics.intervals import Figures, Interval, Resampled, draw, with_seeds


def as_csv(rows: list[dict[str, Any]]) -> str:
    """One line a row, columns as the first row has them; nothing where a value is absent."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


SCRATCH = "scratch"  # the method without pretraining, which the others are held against
OF_MODELS = "of these models; one seed does not tell the methods apart"


class ScoredTask(Protocol):
    """What scoring needs to know of a task."""

    headlines: tuple[str, ...]  # the figures that methods are judged by, the first one above all
    groups: Mapping[str, np.ndarray]  # parts of the examples that are scored on their own: name → (N,), bool
    shared: np.ndarray  # (N,), bool: examples that are in the training data too
    split: str  # what the examples are: dev, which chooses the epoch, or test
    shared_with_dev: np.ndarray  # (N,), bool: test examples that are in the validation data too; none of dev
    given: np.ndarray  # (N,), bool: those that the training data gives away
    given_how: str  # in words
    notes: Mapping[str, str]  # what to know of baselines, by name

    def baselines(self) -> Mapping[str, Any]:
        """Outcomes of what needs no language model."""
        ...

    def flags(self, outcome: Any) -> Flags:
        """Signs in the decisions themselves that nothing was learned."""
        ...

    def breakdown(self, outcome: Any) -> dict[str, Any]:
        """More of an outcome than figures."""
        ...


@dataclass(frozen=True)
class Assessment:
    """What there is to say about a task."""

    figures: dict[str, Any]  # baselines, and each method by seed with mean and standard deviation
    health: dict[str, Flags]  # flags of a method and seed, of a method, or of the data
    details: dict[str, Any]  # scales, intervals, comparisons, groups and breakdowns


def assess(task: ScoredTask, scoring: Scoring, trials: Sequence[Trial[Any]], settings: MetricSettings) -> Assessment:
    """Score every trial at the epoch that was kept, beside baselines and the model before training."""
    return _Assessor(task, scoring, trials, settings).assessment()


class _Assessor:
    """Holds the figures of every outcome, plain and resampled, while they are put together.

    Outcomes are named: a baseline by itself, a trial "full 1", and "full 1 before" training.
    """

    def __init__(
        self, task: ScoredTask, scoring: Scoring, trials: Sequence[Trial[Any]], settings: MetricSettings
    ) -> None:
        self._task, self._scoring, self._trials, self._settings = task, scoring, trials, settings
        self._methods: dict[str, list[Trial[Any]]] = {}
        for trial in trials:
            self._methods.setdefault(trial.method, []).append(trial)
        self._baselines = dict(task.baselines())
        outcomes = self._baselines | {_name(trial): trial.kept.outcome for trial in trials}
        outcomes |= {_before(trial): trial.before.outcome for trial in trials}
        self._figures = {name: scoring.score(outcome) for name, outcome in outcomes.items()}
        self._headlines = _headlines(task, scoring.resampled(trials[0].kept.outcome))
        # Of the models before training only what the trained ones are held against.
        untrained = {_before(trial) for trial in trials}
        self._resampled = {
            name: scoring.resampled(outcome, set(self._headlines) if name in untrained else ())
            for name, outcome in outcomes.items()
        }
        self._drawn = draw(self._resampled, len(task.shared), settings.bootstrap_samples, settings.seed)
        self._shares = {name: scoring.shares(outcome) for name, outcome in outcomes.items()}
        self._fewest = trials[0].kept.outcome.fewest
        self._by_method = {method: self._mean_intervals(of) for method, of in self._methods.items()}

    def assessment(self) -> Assessment:
        health = {_name(trial): self._trial_flags(trial) for trial in self._trials}
        health |= {method: self._scratch_flags(method) for method in self._methods if method != SCRATCH}
        health["data"] = overlap_flags(self._task.shared, self._task.given, self._task.split, self._task.given_how)
        health["data"] |= validation_flags(self._task.shared_with_dev)
        figures: dict[str, Any] = {"baselines": {name: self._figures[name] for name in self._baselines}}
        figures |= {method: self._method_figures(method) for method in self._methods}
        return Assessment(
            figures=figures,
            health={name: flags for name, flags in health.items() if flags},
            details={
                "headlines": self._headlines,
                "scales": self._scoring.scales,
                "better": self._scoring.better,
                "figures": figures,
                "notes": self._scoring.notes(self._trials[0].kept.outcome) | dict(self._task.notes),
                "baselines": {name: self._intervals(name) for name in self._baselines},
                "methods": {method: self._method_details(method) for method in self._methods},
                "comparisons": self._comparisons(),
            },
        )

    def _method_figures(self, method: str) -> dict[str, Any]:
        trials = self._methods[method]
        cells = {
            str(trial.seed): {"epoch": trial.kept.number, "loss": trial.kept.validation_loss}
            | self._figures[_name(trial)]
            for trial in trials
        }
        names = [name for name in next(iter(cells.values())) if name != "epoch"]
        values = {name: [cell[name] for cell in cells.values()] for name in names}
        result: dict[str, Any] = cells | {"mean": {name: float(np.mean(of)) for name, of in values.items()}}
        if len(trials) > 1:
            result["sd"] = {name: float(np.std(of, ddof=1)) for name, of in values.items()}
        return result | {"interval": {name: self._by_method[method][name] for name in self._headlines}}

    def _method_details(self, method: str) -> dict[str, Any]:
        has_seeds = len(self._methods[method]) > 1
        return {
            "intervals": self._by_method[method],
            "intervals_of": "examples and seeds" if has_seeds else "examples, as there is one seed",
            "seeds": {str(trial.seed): self._trial_details(trial) for trial in self._methods[method]},
        }

    def _trial_details(self, trial: Trial[Any]) -> dict[str, Any]:
        resampled = self._resampled[_name(trial)]
        groups = {name: _finite(resampled(which[None].astype(float))) | {"examples": int(which.sum())}
                  for name, which in self._groups().items()}  # fmt: skip
        return {
            "intervals": self._intervals(_name(trial)),
            "before": self._figures[_before(trial)],
            "groups": groups,
            **self._task.breakdown(trial.kept.outcome),
        }

    def _groups(self) -> dict[str, np.ndarray]:
        kept = ~self._task.shared
        without = {"not in the training data": kept} if self._task.shared.any() and kept.any() else {}
        return dict(self._task.groups) | without

    def _intervals(self, name: str) -> dict[str, Interval]:
        return self._scoring.intervals(self._figures[name], self._shares[name], self._drawn[name], self._fewest)

    def _mean_intervals(self, trials: Sequence[Trial[Any]]) -> dict[str, Interval]:
        """Of the mean over seeds: for the choice of examples and of seeds, beside that of examples alone.

        One seed says nothing of others: there it is of examples alone.
        """
        names = [_name(trial) for trial in trials]
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
        """The outcomes of these names, which are seeds of one method."""
        return Candidate(
            [self._figures[name] for name in names],
            [self._drawn[name] for name in names],
            [self._shares[name] for name in names],
            self._fewest,
        )

    def _method(self, method: str) -> Candidate:
        return self._candidate(*(_name(trial) for trial in self._methods[method]))

    def _comparisons(self) -> list[dict[str, Any]]:
        return compare({method: self._method(method) for method in self._methods}, self._scoring.better)

    def _trial_flags(self, trial: Trial[Any]) -> Flags:
        name = _name(trial)
        flags = self._task.flags(trial.kept.outcome) | figure_flags(self._figures[name], self._scoring.scales)
        for other, shown in [*((b, b) for b in self._baselines), (_before(trial), "before_training")]:
            flags |= self._not_above(self._candidate(name), self._candidate(other), shown)
        if self._task.split == "test":
            return flags  # two answers to the test set are no learning curve
        return flags | loss_flags([(epoch.training_loss, epoch.validation_loss) for epoch in trial.epochs])

    def _scratch_flags(self, method: str) -> Flags:
        """A pretrained model that is no better than one that never was, over all seeds."""
        if SCRATCH not in self._methods:
            return {}
        return self._not_above(self._method(method), self._method(SCRATCH), SCRATCH, OF_MODELS)

    def _not_above(self, model: Candidate, other: Candidate, shown: str, note: str = "") -> Flags:
        """By the first headline; `note` is said of models that stand for their methods from one seed.

        A flag is a warning, which may be given too seldom rather than of a model that has learned.
        """
        if not self._headlines:  # as where the data lacks a class that the only score needs
            return {}
        figure = self._headlines[0]
        way = self._scoring.better[figure]
        if way == "neither" or any(figure not in side.drawn[0] for side in (model, other)):
            return {}
        found = difference(figure, model, other, are_alike=True)
        return not_above(
            figure, shown, _mean(model, figure), _mean(other, figure), found.interval, way,
            note if found.is_of_models else "",
        )  # fmt: skip


def _mean(candidate: Candidate, figure: str) -> float:
    return float(np.mean([figures[figure] for figures in candidate.figures]))


def _headlines(task: ScoredTask, resampled: Resampled) -> list[str]:
    """Those of the task's headlines that are computed, or the first figure where none of them is."""
    given = list(resampled(np.ones((1, len(task.shared)))))
    return [name for name in task.headlines if name in given] or given[:1]


def _name(trial: Trial[Any]) -> str:
    return f"{trial.method} {trial.seed}"


def _before(trial: Trial[Any]) -> str:
    return f"{_name(trial)} before"


def _finite(figures: Figures) -> dict[str, float]:
    """Figures of one row of weights; what is not defined there is left out."""
    return {name: float(values[0]) for name, values in figures.items() if np.isfinite(values[0])}
