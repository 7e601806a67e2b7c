"""Accuracy: the share of predictions that are right; a fraction."""

import numpy as np

from retrace.evaluation.outcomes import Classified
from retrace.statistics.intervals import Resampled, Share, mean_of
from retrace.statistics.scales import Figure

FIGURES = {"accuracy": Figure("fraction", "higher")}


def resampled(outcome: Classified) -> Resampled:
    """The figures for weights of examples, (R, N)."""
    return mean_of({name: share.hits for name, share in shares(outcome).items()})


def shares(outcome: Classified) -> dict[str, Share]:
    """The right predictions among all."""
    return {"accuracy": Share.among_all(np.equal(outcome.labels, outcome.predicted))}
