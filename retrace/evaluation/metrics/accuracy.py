"""Accuracy: the share of predictions that are right."""

import numpy as np
from sklearn.metrics import accuracy_score

from retrace.evaluation.outcomes import Classified
from retrace.statistics.intervals import Resampled, Share, mean_of
from retrace.statistics.scales import Figure

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
