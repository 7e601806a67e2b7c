"""Accuracy: the share of predictions that are right."""

import numpy as np
from sklearn.metrics import accuracy_score

from stages.metrics.intervals import Share
from stages.metrics.outcomes import Classified
from stages.metrics.resampling import Resampled, mean_of
from stages.metrics.scales import Figure

FIGURES = {"accuracy": Figure("fraction", "higher")}


def score(outcome: Classified) -> dict[str, float]:
    """A fraction."""
    return {"accuracy": float(accuracy_score(outcome.labels, outcome.predicted))}


def resampled(outcome: Classified) -> Resampled:
    """The same for weights of examples."""
    return mean_of({name: share.hits for name, share in shares(outcome).items()})


def shares(outcome: Classified) -> dict[str, Share]:
    """The predictions that are right, of all."""
    return {"accuracy": Share.among_all(np.equal(outcome.labels, outcome.predicted))}
