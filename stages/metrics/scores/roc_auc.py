"""Area under the receiver operating characteristic (Hanley and McNeil 1982; Hand and Till 2001 for several classes).

The chance that an example of a class is given a higher probability of it than one of another class.
With two classes it is that of the second, with more the plain mean of each against the rest. It is
absent where a model gives no probabilities or the data lacks a class.
"""

import numpy as np
from sklearn.metrics import roc_auc_score

from stages.metrics.outcomes import Classified
from stages.metrics.resampling import Resampled

SCALES = {"roc_auc": "fraction"}


def score(outcome: Classified) -> dict[str, float]:
    """A fraction; 0.5 is chance."""
    chosen = _classes(outcome)
    if outcome.probabilities is None or not chosen:
        return {}
    areas = [roc_auc_score(outcome.labels == c, outcome.probabilities[:, c]) for c in chosen]
    return {"roc_auc": float(np.mean(areas))}


def resampled(outcome: Classified) -> Resampled:
    """The same for weights of examples, the mean over the classes that were drawn."""
    chosen, probabilities = _classes(outcome), outcome.probabilities
    if probabilities is None or not chosen:
        return lambda _: {}

    def figures(weights: np.ndarray) -> dict[str, np.ndarray]:
        areas = np.stack([_area(outcome.labels == c, probabilities[:, c], weights) for c in chosen])
        known = np.isfinite(areas)
        return {"roc_auc": np.where(known, areas, 0).sum(axis=0) / np.maximum(1, known.sum(axis=0))}

    return figures


def _classes(outcome: Classified) -> list[int]:
    """The classes whose areas are averaged; none where some class does not occur."""
    count = len(outcome.classes)
    if len(np.unique(outcome.labels)) < count:
        return []
    return [1] if count == 2 else list(range(count))


def _area(positive: np.ndarray, probability: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weighted area, (R,): of all pairs, those in the right order, and half of those that are equal."""
    order = np.argsort(probability, kind="stable")
    levels = np.flatnonzero(np.diff(probability[order], prepend=-1.0))  # where each level of probability begins
    sorted_weights = weights[:, order]
    above = np.add.reduceat(sorted_weights * positive[order], levels, axis=1)
    below = np.add.reduceat(sorted_weights * ~positive[order], levels, axis=1)
    right = (above * (np.cumsum(below, axis=1) - below / 2)).sum(axis=1)
    pairs = above.sum(axis=1) * below.sum(axis=1)
    return np.divide(right, pairs, out=np.full(len(weights), np.nan), where=pairs > 0)
