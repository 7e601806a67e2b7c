"""Precision of the favourable class."""

from collections.abc import Sequence

from sklearn.metrics import precision_score

SCALE = "fraction"


def score(labels: Sequence[int], predicted: Sequence[int]) -> dict[str, float]:
    """From right and predicted classes, 1 the favourable one; a fraction, 0 where it is undefined."""
    value = precision_score(labels, predicted, zero_division=0)  # pyright: ignore[reportArgumentType]
    return {"precision": float(value)}
