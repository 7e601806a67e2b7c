"""Recall: the share of a class's examples that are found."""

from stages.metrics.averages import averages, figures_of, resampled_averages, shares_of
from stages.metrics.intervals import Share
from stages.metrics.outcomes import Classified
from stages.metrics.resampling import Resampled

FIGURES = figures_of("recall")


def score(outcome: Classified) -> dict[str, float]:
    """Of the second of two classes, and as macro, micro and weighted mean."""
    return averages("recall", outcome)


def resampled(outcome: Classified) -> Resampled:
    """The same for weights of examples."""
    return resampled_averages("recall", outcome)


def shares(outcome: Classified) -> dict[str, Share]:
    """The examples of the second class that are found, and the micro and weighted means."""
    return shares_of("recall", outcome)
