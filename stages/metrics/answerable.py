"""Means over the questions that have an answer.

METEOR, BLEU and ROUGE give 0 to two empty texts, so that refusing a question that has no answer would
count as wrong; they are of answerable questions alone.
"""

from collections.abc import Callable

import numpy as np

from stages.metrics.intervals import Share, whole_shares
from stages.metrics.outcomes import Answered
from stages.metrics.resampling import Resampled, mean_of

# An answer and the right ones → its figures. Answers recur over epochs, methods and seeds: cache it.
OneAnswer = Callable[[str, tuple[str, ...]], dict[str, float]]


def means(outcome: Answered, of: OneAnswer) -> dict[str, float]:
    """The mean of each figure; none where no question has an answer."""
    return {name: float(values[outcome.answerable].mean()) for name, values in _values(outcome, of).items()}


def resampled_means(outcome: Answered, of: OneAnswer) -> Resampled:
    """The same for weights of questions."""
    values = _values(outcome, of)
    return mean_of(values, outcome.answerable) if values else lambda weights: {}


def shares_of(outcome: Answered, of: OneAnswer) -> dict[str, Share]:
    """Those that are shares of questions, as nothing but 0 and 1 is in the mean."""
    return whole_shares(_values(outcome, of), outcome.answerable)


def _values(outcome: Answered, of: OneAnswer) -> dict[str, np.ndarray]:
    """Name → (N,), 0 where a question has no answer."""
    rows = [of(answer, golds) if golds else None for answer, golds in zip(outcome.answers, outcome.golds, strict=True)]
    names = next((row for row in rows if row is not None), {})
    return {name: np.array([row[name] if row else 0.0 for row in rows]) for name in names}
