"""Recall: the share of a class's examples that are found.

Of the second of two classes, and as macro, micro and weighted mean.
"""

from retrace.evaluation.classification import by_class_of, figures_of, resampled_averages, shares_of
from retrace.evaluation.outcomes import Classified
from retrace.statistics.intervals import ByClass, Resampled, Share

FIGURES = figures_of("recall")


def resampled(outcome: Classified) -> Resampled:
    """For weights of examples."""
    return resampled_averages("recall", outcome)


def shares(outcome: Classified) -> dict[str, Share]:
    """The examples of the second class that are found, and the micro and weighted means."""
    return shares_of("recall", outcome)


def by_class(outcome: Classified) -> dict[str, ByClass]:
    """What the macro mean is taken over."""
    return by_class_of("recall", outcome)
