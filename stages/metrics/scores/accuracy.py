"""Accuracy: the share of predictions that are right."""

from collections.abc import Sequence

from sklearn.metrics import accuracy_score

SCALE = "fraction"


def score(labels: Sequence[int], predicted: Sequence[int]) -> dict[str, float]:
    """From right and predicted classes; a fraction."""
    return {"accuracy": float(accuracy_score(labels, predicted))}
