"""F1 of the favourable class: the harmonic mean of precision and recall."""

from collections.abc import Sequence

from sklearn.metrics import f1_score

SCALE = "fraction"


def score(labels: Sequence[int], predicted: Sequence[int]) -> dict[str, float]:
    """From right and predicted classes, 1 the favourable one; a fraction, 0 where it is undefined."""
    value = f1_score(labels, predicted, zero_division=0)  # pyright: ignore[reportArgumentType]
    return {"f1": float(value)}
