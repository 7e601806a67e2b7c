"""Recall: the share of a class's examples that are found.

Given for the second of two classes, and as macro, micro and weighted mean.
"""

from functools import partial

from retrace.evaluation.classification import by_class_of, figures_of, resampled_averages, shares_of
from retrace.evaluation.outcomes import Classified
from retrace.statistics.intervals import Resampled

FIGURES = figures_of("recall")
shares = partial(shares_of, "recall")  # the examples of the second class that are found; micro and weighted means
by_class = partial(by_class_of, "recall")  # what the macro mean is taken over


def resampled(outcome: Classified) -> Resampled:
    """The figures for weights of examples, (R, N)."""
    return resampled_averages("recall", outcome)
