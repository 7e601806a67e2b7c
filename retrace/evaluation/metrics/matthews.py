"""Matthews' correlation of true and predicted classes (Matthews 1975; Gorodkin 2004 for several classes)."""

from functools import partial

import numpy as np

from retrace.evaluation.classification import counting, of_rarer
from retrace.evaluation.outcomes import Classified
from retrace.statistics.intervals import Resampled
from retrace.statistics.scales import Figure

FIGURES = {"matthews": Figure("correlation", "higher", "Matthews correlation")}
examples = partial(of_rarer, "matthews")


def resampled(outcome: Classified) -> Resampled:
    """The correlation for weights of examples; 0 if all predictions, or all labels, are the same class."""
    counted = counting(outcome)

    def figures(weights: np.ndarray) -> dict[str, np.ndarray]:
        hits, support, predicted = counted(weights)
        right, total = hits.sum(axis=1), support.sum(axis=1)
        together = right * total - (support * predicted).sum(axis=1)
        spread = (total**2 - (support**2).sum(axis=1)) * (total**2 - (predicted**2).sum(axis=1))
        return {"matthews": np.divide(together, np.sqrt(spread), out=np.zeros_like(total), where=spread > 0)}

    return figures
