"""A task's methods and seeds, scored: figures, intervals, comparisons and flags, all from saved predictions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from stages.metrics.comparisons import Candidate, compare
from stages.metrics.health import Flags, figure_flags, loss_flags, not_above, overlap_flags
from stages.metrics.intervals import mean_over_seeds, percentile_interval, seeds_resampled, share_interval
from stages.metrics.resampling import Figures, draw
from stages.metrics.scoring import Scoring
from stages.metrics.settings import ScoreSettings
from stages.metrics.trials import Trial

SCRATCH = "scratch"  # the method without pretraining, which the others are held against


class ScoredTask(Protocol):
    """What scoring needs to know of a task."""

    headlines: tuple[str, ...]  # the figures that methods are judged by, the first one above all
    groups: Mapping[str, np.ndarray]  # parts of the examples that are scored on their own: name → (N,), bool
    shared: np.ndarray  # (N,), bool: examples that are in the training data too
    given: np.ndarray  # (N,), bool: those whose text lies in a training text, or holds one that is half of it

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


def assess(task: ScoredTask, scoring: Scoring, trials: Sequence[Trial[Any]], settings: ScoreSettings) -> Assessment:
    """Score every trial at the epoch that was kept, beside baselines and the model before training."""
    return _Assessor(task, scoring, trials, settings).assessment()


class _Assessor:
    """Holds the figures of every outcome, plain and resampled, while they are put together.

    Outcomes are named: a baseline by itself, a trial "full 1", and "full 1 before" training.
    """

    def __init__(
        self, task: ScoredTask, scoring: Scoring, trials: Sequence[Trial[Any]], settings: ScoreSettings
    ) -> None:
        self._task, self._scoring, self._trials, self._settings = task, scoring, trials, settings
        self._methods: dict[str, list[Trial[Any]]] = {}
        for trial in trials:
            self._methods.setdefault(trial.method, []).append(trial)
        self._baselines = dict(task.baselines())
        outcomes = self._baselines | {_name(trial): trial.kept.outcome for trial in trials}
        outcomes |= {_before(trial): trial.before.outcome for trial in trials}
        self._figures = {name: scoring.score(outcome) for name, outcome in outcomes.items()}
        # Of the models before training only what the trained ones are held against.
        untrained = {_before(trial) for trial in trials}
        self._resampled = {
            name: scoring.resampled(outcome, set(task.headlines) if name in untrained else ())
            for name, outcome in outcomes.items()
        }
        self._drawn = draw(self._resampled, len(task.shared), settings.resamples, settings.seed)
        self._right = {name: scoring.right(outcome) for name, outcome in outcomes.items()}
        self._headlines = [name for name in task.headlines if name in self._drawn[_name(trials[0])]]
        self._by_method = {method: self._mean_intervals(of) for method, of in self._methods.items()}

    def assessment(self) -> Assessment:
        health = {_name(trial): self._trial_flags(trial) for trial in self._trials}
        health |= {method: self._scratch_flags(method) for method in self._methods if method != SCRATCH}
        health["data"] = overlap_flags(self._task.shared, self._task.given, "dev")
        return Assessment(
            figures={"baselines": {name: self._figures[name] for name in self._baselines}}
            | {method: self._method_figures(method) for method in self._methods},
            health={name: flags for name, flags in health.items() if flags},
            details={
                "headlines": self._headlines,
                "scales": self._scoring.scales,
                "notes": self._scoring.notes(self._trials[0].kept.outcome),
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
        return {
            "intervals": self._by_method[method],
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

    def _intervals(self, name: str) -> dict[str, Any]:
        drawn = self._drawn[name]
        return {figure: self._interval(figure, self._figures[name][figure], drawn[figure], figure in self._right[name])
                for figure in drawn}  # fmt: skip

    def _mean_intervals(self, trials: Sequence[Trial[Any]]) -> dict[str, Any]:
        """Of the mean over seeds: of the test set, and with the seeds' own spread where there are several."""
        names = [_name(trial) for trial in trials]
        generator = np.random.default_rng(self._settings.seed)
        found = {}
        for figure in self._drawn[names[0]]:
            drawn = [self._drawn[name][figure] for name in names]
            value = float(np.mean([self._figures[name][figure] for name in names]))
            found[figure] = self._interval(figure, value, mean_over_seeds(drawn), figure in self._right[names[0]])
            if len(names) > 1:
                both = percentile_interval(seeds_resampled(drawn, generator))
                found[figure] |= {f"{end}_with_seeds": both[end] for end in ("low", "high")}
        return found

    def _interval(self, figure: str, value: float, drawn: np.ndarray, is_share: bool) -> dict[str, float]:
        if not is_share:
            return percentile_interval(drawn)
        whole = 100.0 if self._scoring.scales[figure] == "percentage" else 1.0
        ends = share_interval(value / whole, len(self._task.shared), drawn / whole)
        return {end: at * whole for end, at in ends.items()}

    def _comparisons(self) -> list[dict[str, Any]]:
        candidates = {}
        for method, trials in self._methods.items():
            names = [_name(trial) for trial in trials]
            candidates[method] = Candidate(
                [self._figures[name] for name in names],
                [self._drawn[name] for name in names],
                [self._right[name] for name in names],
            )
        return compare(candidates, self._settings.seed)

    def _trial_flags(self, trial: Trial[Any]) -> Flags:
        name = _name(trial)
        flags = self._task.flags(trial.kept.outcome) | figure_flags(self._figures[name], self._scoring.scales)
        for other, shown in [*((b, b) for b in self._baselines), (_before(trial), "before_training")]:
            flags |= self._not_above(name, other, shown)
        return flags | loss_flags([(epoch.training_loss, epoch.validation_loss) for epoch in trial.epochs])

    def _scratch_flags(self, method: str) -> Flags:
        """A pretrained model that is no better than one that never was, over all seeds."""
        if SCRATCH not in self._methods:
            return {}
        drawn, values = {}, {}
        for name in (method, SCRATCH):
            names = [_name(trial) for trial in self._methods[name]]
            drawn[name] = mean_over_seeds([self._drawn[n][self._headlines[0]] for n in names])
            values[name] = float(np.mean([self._figures[n][self._headlines[0]] for n in names]))
        differences = drawn[method] - drawn[SCRATCH]
        return not_above(self._headlines[0], SCRATCH, values[method], values[SCRATCH], differences)

    def _not_above(self, name: str, other: str, shown: str) -> Flags:
        figure = self._headlines[0]
        differences = self._drawn[name][figure] - self._drawn[other][figure]
        return not_above(figure, shown, self._figures[name][figure], self._figures[other][figure], differences)


def _name(trial: Trial[Any]) -> str:
    return f"{trial.method} {trial.seed}"


def _before(trial: Trial[Any]) -> str:
    return f"{_name(trial)} before"


def _finite(figures: Figures) -> dict[str, float]:
    """Figures of one row of weights; what is not defined there is left out."""
    return {name: float(values[0]) for name, values in figures.items() if np.isfinite(values[0])}
