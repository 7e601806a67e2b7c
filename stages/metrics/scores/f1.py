"""F1: the harmonic mean of precision and recall."""

from stages.metrics.averages import averages, figures_of, resampled_averages, shares_of
from stages.metrics.intervals import Share
from stages.metrics.outcomes import Classified
from stages.metrics.resampling import Resampled

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
