"""F1: the harmonic mean of precision and recall."""

from retrace.evaluation.confusion import averages, figures_of, resampled_averages, shares_of
from retrace.evaluation.outcomes import Classified
from retrace.statistics.intervals import Resampled, Share

FIGURES = figures_of("f1")


def score(outcome: Classified) -> dict[str, float]:
    """Of the second of two classes, and as macro, micro and weighted mean."""
    return averages("f1", outcome)


def resampled(outcome: Classified) -> Resampled:
    """The same for weights of examples."""
    return resampled_averages("f1", outcome)


def shares(outcome: Classified) -> dict[str, Share]:
    """The micro mean, which is a share as the others are not."""
    return shares_of("f1", outcome)
