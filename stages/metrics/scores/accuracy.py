"""Accuracy: the share of predictions that are right."""

import numpy as np
from sklearn.metrics import accuracy_score

from stages.metrics.outcomes import Classified
from stages.metrics.resampling import Resampled, mean_of

SCALES = {"accuracy": "fraction"}


def score(outcome: Classified) -> dict[str, float]:
    """A fraction."""
    return {"accuracy": float(accuracy_score(outcome.labels, outcome.predicted))}


def resampled(outcome: Classified) -> Resampled:
    """The same for weights of examples."""
    return mean_of(right(outcome))


def right(outcome: Classified) -> dict[str, np.ndarray]:
    """Which predictions are right."""
    return {"accuracy": np.equal(outcome.labels, outcome.predicted)}
