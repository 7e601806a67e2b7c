"""The metrics that params.yaml lists for a kind of task; each is a file of retrace/evaluation/metrics."""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from types import ModuleType
from typing import Any, get_type_hints

import numpy as np

from retrace.core.registry import load_plugin
from retrace.statistics.intervals import Figures, Interval, Resampled, Share, combine, interval_of_examples
from retrace.statistics.scales import SCALES, Better, Figure

SCORES = "retrace.evaluation.metrics"


def outcome_of(score: ModuleType) -> type:
    """What a metric is a function of: `Classified` or `Answered`."""
    return get_type_hints(score.score)["outcome"]


class Scoring:
    """Figures of an outcome by every listed metric."""

    def __init__(self, names: Sequence[str]) -> None:
        """The names are files of retrace/evaluation/metrics, all for the same kind of outcome."""
        self._scores = [load_plugin(SCORES, name, "metrics") for name in names]

    @property
    def scales(self) -> dict[str, str]:
        """The scale of each figure."""
        return {name: figure.scale for name, figure in self._figures.items()}

    @property
    def better(self) -> dict[str, Better]:
        """Which direction of each figure is better."""
        return {name: figure.better for name, figure in self._figures.items()}

    @cached_property
    def _figures(self) -> dict[str, Figure]:
        return {name: figure for score in self._scores for name, figure in score.FIGURES.items()}

    def score(self, outcome: Any) -> dict[str, float]:
        """The figures."""
        return {name: value for score in self._scores for name, value in score.score(outcome).items()}

    def resampled(self, outcome: Any, among: Collection[str] = ()) -> Resampled:
        """The figures except counts and thresholds for weights of examples, of all metrics or those with `among`."""
        chosen = [score for score in self._scores if not among or score.FIGURES.keys() & among]
        return combine([score.resampled(outcome) for score in chosen])

    def shares(self, outcome: Any) -> dict[str, Share]:
        """The figures that are shares of examples."""
        found = [score.shares(outcome) for score in self._scores if hasattr(score, "shares")]
        return {name: share for part in found for name, share in part.items()}

    def interval(self, name: str, value: float, shares: Sequence[Share], drawn: np.ndarray, examples: int) -> Interval:
        """The interval of a figure or of its mean over seeds, for the choice of examples."""
        return interval_of_examples(value, shares, drawn, examples, self.ends(name))

    def intervals(
        self, figures: Mapping[str, float], shares: Mapping[str, Share], drawn: Figures, examples: int
    ) -> dict[str, Interval]:
        """The intervals of the resampled figures of one outcome."""
        return {
            name: self.interval(name, figures[name], [shares[name]] if name in shares else [], values, examples)
            for name, values in drawn.items()
        }

    def ends(self, name: str) -> tuple[float, float]:
        """The ends of a figure's scale."""
        return SCALES[self._figures[name].scale].ends

    def notes(self, outcome: Any) -> dict[str, str]:
        """Notes of metrics on how they were computed, such as sacrebleu's signature."""
        found = [score.notes(outcome) for score in self._scores if hasattr(score, "notes")]
        return {name: note for part in found for name, note in part.items()}
