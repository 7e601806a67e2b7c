"""Area under the receiver operating characteristic (Hanley and McNeil 1982; Fawcett 2006 for several classes).

The probability that an example of a class is given a higher probability of that class than an example of another class.
With two classes it is the area of the second one, with more the mean over each class against the rest. Absent if a
model gives no probabilities or the data lacks a class.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.sparse import csr_array
from sklearn.metrics import roc_auc_score

from retrace.evaluation.classification import of_rarer
from retrace.evaluation.outcomes import Classified
from retrace.statistics.intervals import ByClass, Resampled
from retrace.statistics.scales import Figure

FIGURES = {"roc_auc": Figure("fraction", "higher", "area under the ROC curve")}
examples = partial(of_rarer, "roc_auc")


def score(outcome: Classified) -> dict[str, float]:
    """The area, or the mean over classes: a fraction; 0.5 is chance."""
    areas = _areas(outcome)
    return {"roc_auc": float(np.mean(areas))} if areas else {}


def by_class(outcome: Classified) -> dict[str, ByClass]:
    """The areas of single classes behind the mean over more than two."""
    areas = _areas(outcome) if len(outcome.classes) > 2 else []
    return {"roc_auc": ByClass(np.array(areas), np.bincount(outcome.labels), len(areas))} if areas else {}


def _areas(outcome: Classified) -> list[float]:
    if outcome.probabilities is None:
        return []
    return [float(roc_auc_score(outcome.labels == c, outcome.probabilities[:, c])) for c in _classes(outcome)]


def resampled(outcome: Classified) -> Resampled:
    """The same for weights of examples; a mean over the classes that were drawn."""
    probabilities = outcome.probabilities
    if probabilities is None:
        return lambda _: {}
    areas = [_area(outcome.labels == c, probabilities[:, c]) for c in _classes(outcome)]

    def figures(weights: np.ndarray) -> dict[str, np.ndarray]:
        columns = np.ascontiguousarray(weights.T, dtype=np.float32)  # exact up to 2**24 examples
        totals = weights.sum(axis=1)
        found = np.stack([area(columns, totals) for area in areas])
        known = np.isfinite(found)
        with np.errstate(invalid="ignore"):
            return {"roc_auc": np.where(known, found, 0).sum(axis=0) / known.sum(axis=0)}

    return figures if areas else lambda _: {}


def _classes(outcome: Classified) -> list[int]:
    """The classes whose areas are averaged; none if some class does not occur or there is only one."""
    count = len(outcome.classes)
    if len(np.unique(outcome.labels)) < max(count, 2):
        return []
    return [1] if count == 2 else list(range(count))


def _area(positive: np.ndarray, probability: np.ndarray) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Weights (N, R), their sums (R,) → (R,): the share of pairs in the right order, ties counted half.

    Pairs in the wrong order are counted, as a good model has few.
    """
    order = np.argsort(-probability, kind="stable")
    of_class, others = order[positive[order]], order[~positive[order]]
    # For each example of the class: how many of the others, in order, are more probable, and how many no less probable.
    ranks = [np.searchsorted(-probability[others], -probability[of_class], side) for side in ("left", "right")]
    # The others between two such places always count together. With many classes these stretches are few.
    places, ranks = np.unique(ranks, return_inverse=True)
    more, no_less = ranks.reshape(2, -1)
    first = others[: places[-1]]
    stretch = np.searchsorted(places, np.arange(len(first)), side="right")
    sums = csr_array((np.ones(len(stretch), np.float32), (stretch, first)), shape=(len(places), len(positive)))

    def area(weights: np.ndarray, totals: np.ndarray) -> np.ndarray:
        above = np.cumsum(sums @ weights, axis=0)
        drawn = weights[of_class].astype(np.float64)
        wrong = np.einsum("pr,pr->r", drawn, above[more] + above[no_less]) / 2
        count = drawn.sum(axis=0)
        pairs = count * (totals - count)
        return np.divide(pairs - wrong, pairs, out=np.full(len(count), np.nan), where=pairs > 0)

    return area
