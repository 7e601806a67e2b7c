"""The scores that params.yaml lists for a task, taken together; each is a file of stages/metrics/scores."""

from collections.abc import Collection, Sequence
from types import ModuleType
from typing import Any, get_type_hints

import numpy as np

from stages.harness.errors import InputError
from stages.harness.plugins import load_plugin
from stages.metrics.outcomes import Answered, Classified
from stages.metrics.resampling import Resampled, together

SCORES = "stages.metrics.scores"
CALLED = {Classified: "classes", Answered: "answers"}


def outcome_of(score: ModuleType) -> type:
    """What a score is a function of: `Classified` or `Answered`."""
    return get_type_hints(score.score)["outcome"]


class Scoring:
    """Figures of an outcome by every listed score."""

    def __init__(self, names: Sequence[str], key: str, kind: type[Classified] | type[Answered]) -> None:
        """`key` of params.yaml lists the names. Raises InputError where there is no such score of that kind."""
        self._scores = [load_plugin(SCORES, name, key) for name in names]
        for name, score in zip(names, self._scores, strict=True):
            if outcome_of(score) is not kind:
                raise InputError(f"params.yaml: {key}: {name!r} is not allowed; it is no score of {CALLED[kind]}")

    @property
    def scales(self) -> dict[str, str]:
        """The scale of each figure, such as fraction or percentage."""
        return {name: scale for score in self._scores for name, scale in score.SCALES.items()}

    def score(self, outcome: Any) -> dict[str, float]:
        """The figures."""
        return {name: value for score in self._scores for name, value in score.score(outcome).items()}

    def resampled(self, outcome: Any, among: Collection[str] = ()) -> Resampled:
        """The figures but counts and thresholds for weights of examples, of all scores or those that give `among`."""
        chosen = [score for score in self._scores if not among or score.SCALES.keys() & among]
        return together([score.resampled(outcome) for score in chosen])

    def right(self, outcome: Any) -> dict[str, np.ndarray]:
        """Of each figure that is a share of the examples, which of them count: name → (N,), bool."""
        found = [score.right(outcome) for score in self._scores if hasattr(score, "right")]
        return {name: values for part in found for name, values in part.items()}

    def notes(self, outcome: Any) -> dict[str, str]:
        """What a score says of how it was computed, such as sacrebleu's signature."""
        found = [score.notes(outcome) for score in self._scores if hasattr(score, "notes")]
        return {name: note for part in found for name, note in part.items()}
