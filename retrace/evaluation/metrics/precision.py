"""Precision: the share of a class's predictions that are right.

Of the second of two classes, and as macro, micro and weighted mean.
"""

from retrace.evaluation.classification import by_class_of, figures_of, resampled_averages, shares_of
from retrace.evaluation.outcomes import Classified
from retrace.statistics.intervals import ByClass, Resampled, Share

FIGURES = figures_of("precision")


def resampled(outcome: Classified) -> Resampled:
    """For weights of examples."""
    return resampled_averages("precision", outcome)


def shares(outcome: Classified) -> dict[str, Share]:
    """The predictions of the second class that are right, and the micro mean."""
    return shares_of("precision", outcome)


def by_class(outcome: Classified) -> dict[str, ByClass]:
    """What the macro mean is taken over."""
    return by_class_of("precision", outcome)
