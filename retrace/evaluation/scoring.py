"""The metrics that params.yaml lists for a kind of task; each is a file of retrace/evaluation/metrics."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any, get_type_hints

import numpy as np

from retrace.core.settings import load_plugin
from retrace.statistics.intervals import Resampled, Share, combine
from retrace.statistics.scales import SCALES

METRICS = "retrace.evaluation.metrics"


def outcome_of(metric: ModuleType) -> type:
    """What a metric is a function of: `Classified` or `Answered`."""
    return get_type_hints(metric.resampled)["outcome"]


def figures(metric: ModuleType, outcome: Any) -> dict[str, float]:
    """A metric's figures: by its `score` where it has one, else those of every example once."""
    if hasattr(metric, "score"):
        return metric.score(outcome)
    once = metric.resampled(outcome)(np.ones((1, len(outcome))))
    return {name: float(values[0]) for name, values in once.items()}


class Scoring:
    """Figures of an outcome by every listed metric."""

    def __init__(self, names: Sequence[str]) -> None:
        """The names are files of retrace/evaluation/metrics, all for the same kind of outcome."""
        self._names, self._metrics = names, [load_plugin(METRICS, name, "metrics") for name in names]
        every = {name: figure for metric in self._metrics for name, figure in metric.FIGURES.items()}
        self.legend = {name: replace(of, name=of.name or name.replace("_", " ")) for name, of in every.items()}
        self.scales = {name: figure.scale for name, figure in every.items()}
        self.ends = {name: SCALES[scale].ends for name, scale in self.scales.items()}

    def of(self, names: Collection[str]) -> "Scoring":
        """By those metrics alone that give any of the figures."""
        return Scoring([name for name, of in zip(self._names, self._metrics, strict=True) if of.FIGURES.keys() & names])

    def score(self, outcome: Any) -> dict[str, float]:
        """The figures."""
        return {name: value for metric in self._metrics for name, value in figures(metric, outcome).items()}

    def resampled(self, outcome: Any) -> Resampled:
        """The figures except counts and thresholds for weights of examples."""
        return combine([metric.resampled(outcome) for metric in self._metrics])

    def shares(self, outcome: Any) -> dict[str, Share]:
        """The figures that are shares of examples."""
        return self._optional("shares", outcome)

    def notes(self, outcome: Any) -> dict[str, str]:
        """Notes of metrics on how they were computed, such as sacrebleu's signature."""
        return self._optional("notes", outcome)

    def _optional(self, function: str, outcome: Any) -> dict[str, Any]:
        """What those metrics that have such a function say."""
        found = [getattr(metric, function)(outcome) for metric in self._metrics if hasattr(metric, function)]
        return {name: value for part in found for name, value in part.items()}
