"""F1: the harmonic mean of precision and recall.

Given for the second of two classes, and as macro, micro and weighted mean.
"""

from functools import partial

from retrace.evaluation.classification import by_class_of, figures_of, resampled_averages, shares_of
from retrace.evaluation.outcomes import Classified
from retrace.statistics.intervals import Resampled

FIGURES = figures_of("f1")
shares = partial(shares_of, "f1")  # the micro mean, the only figure that is a share
by_class = partial(by_class_of, "f1")  # what the macro mean is taken over


def examples(outcome: Classified) -> dict[str, int]:
    """The number of examples that are positive or predicted positive; true negatives do not affect F1."""
    return {"f1": int(((outcome.labels == 1) | (outcome.predicted == 1)).sum())}


def resampled(outcome: Classified) -> Resampled:
    """The figures for weights of examples, (R, N)."""
    return resampled_averages("f1", outcome)
