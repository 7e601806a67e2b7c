"""Matthews' correlation of right and predicted classes (Matthews 1975; Gorodkin 2004 for several)."""

import numpy as np
from sklearn.metrics import matthews_corrcoef

from retrace.evaluation.classification import counting
from retrace.evaluation.outcomes import Classified
from retrace.statistics.intervals import Resampled
from retrace.statistics.scales import Figure

FIGURES = {"matthews": Figure("correlation", "higher", "Matthews correlation")}


def score(outcome: Classified) -> dict[str, float]:
    """From -1 to 1; 0 where every prediction, or every right class, is the same."""
    if len(np.union1d(outcome.labels, outcome.predicted)) < 2:  # scikit-learn warns about a single class
        return {"matthews": 0.0}
    return {"matthews": float(matthews_corrcoef(outcome.labels, outcome.predicted))}


def resampled(outcome: Classified) -> Resampled:
    """The same for weights of examples."""
    counted = counting(outcome)

    def figures(weights: np.ndarray) -> dict[str, np.ndarray]:
        hits, support, predicted = counted(weights)
        right, total = hits.sum(axis=1), support.sum(axis=1)
        together = right * total - (support * predicted).sum(axis=1)
        spread = (total**2 - (support**2).sum(axis=1)) * (total**2 - (predicted**2).sum(axis=1))
        return {"matthews": np.divide(together, np.sqrt(spread), out=np.zeros_like(total), where=spread > 0)}

    return figures
