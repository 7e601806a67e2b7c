"""How often which class was taken for which, and what follows from that."""

from typing import NamedTuple

import numpy as np

from stages.metrics.outcomes import Classified


class ByClass(NamedTuple):
    """Figures of each class, (R, C); a precision or recall of nothing is 0, as scikit-learn has it."""

    precision: np.ndarray
    recall: np.ndarray
    f1: np.ndarray
    support: np.ndarray
    present: np.ndarray  # whether any example is of the class or was taken for it


def confusions(outcome: Classified, weights: np.ndarray) -> np.ndarray:
    """Weights (R, N) → how much weight of each right class was given each class, (R, C, C)."""
    classes = len(outcome.classes)
    cells = np.eye(classes * classes)[outcome.labels * classes + outcome.predicted]
    return (weights @ cells).reshape(-1, classes, classes)


def by_class(matrices: np.ndarray) -> ByClass:
    """Precision, recall and F1 of every class from confusion matrices (R, C, C)."""
    right = np.diagonal(matrices, axis1=1, axis2=2)
    support, predicted = matrices.sum(axis=2), matrices.sum(axis=1)
    return ByClass(
        precision=_ratio(right, predicted),
        recall=_ratio(right, support),
        f1=_ratio(2 * right, support + predicted),
        support=support,
        present=support + predicted > 0,
    )


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(part, whole, out=np.zeros_like(part, dtype=np.float64), where=whole > 0)
