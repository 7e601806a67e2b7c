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
    """The examples that are of the positive class, or predicted as it; the others do not enter its F1."""
    return {"f1": int(((outcome.labels == 1) | (outcome.predicted == 1)).sum())}


def resampled(outcome: Classified) -> Resampled:
    """For weights of examples."""
    return resampled_averages("f1", outcome)
