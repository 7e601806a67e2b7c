"""Precision: the share of a class's predictions that are right."""

from stages.metrics.averages import averages, figures_of, resampled_averages, shares_of
from stages.metrics.intervals import Share
from stages.metrics.outcomes import Classified
from stages.metrics.resampling import Resampled

FIGURES = figures_of("precision")


def score(outcome: Classified) -> dict[str, float]:
    """Of the second of two classes, and as macro, micro and weighted mean."""
    return averages("precision", outcome)


def resampled(outcome: Classified) -> Resampled:
    """The same for weights of examples."""
    return resampled_averages("precision", outcome)


def shares(outcome: Classified) -> dict[str, Share]:
    """The predictions of the second class that are right, and the micro mean."""
    return shares_of("precision", outcome)
