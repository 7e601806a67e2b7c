"""F1: the harmonic mean of precision and recall.

Of the second of two classes, and as macro, micro and weighted mean.
"""

from retrace.evaluation.classification import by_class_of, figures_of, resampled_averages, shares_of
from retrace.evaluation.outcomes import Classified
from retrace.statistics.intervals import ByClass, Resampled, Share

FIGURES = figures_of("f1")


def resampled(outcome: Classified) -> Resampled:
    """For weights of examples."""
    return resampled_averages("f1", outcome)


def shares(outcome: Classified) -> dict[str, Share]:
    """The micro mean, the only figure that is a share."""
    return shares_of("f1", outcome)


def by_class(outcome: Classified) -> dict[str, ByClass]:
    """What the macro mean is taken over."""
    return by_class_of("f1", outcome)
