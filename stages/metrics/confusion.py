"""How often which class was taken for which, and what follows from that."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from stages.metrics.outcomes import Classified


class ClassCounts(NamedTuple):
    """What precision, recall, F1 and Matthews' correlation are made of: weights of each class, (R, C)."""

    hits: np.ndarray  # of the class and taken for it
    support: np.ndarray  # of the class
    predicted: np.ndarray  # taken for the class


class ByClass(NamedTuple):
    """Figures of each class, (R, C); a precision or recall of nothing is 0, as scikit-learn has it."""

    precision: np.ndarray
    recall: np.ndarray
    f1: np.ndarray


def confusion(outcome: Classified) -> np.ndarray:
    """How many examples of each right class were given each class, (C, C)."""
    classes = len(outcome.classes)
    cells = np.bincount(outcome.labels * classes + outcome.predicted, minlength=classes * classes)
    return cells.reshape(classes, classes)


def counting(outcome: Classified) -> Callable[[np.ndarray], ClassCounts]:
    """A function of weights of examples, (R, N), that counts by class.

    An example is in two or three of the counts, however many classes there are, so memory does not grow with
    the square of their number as whole confusion matrices would.
    """
    classes, examples = len(outcome.classes), np.arange(len(outcome.labels))
    hits = examples[outcome.labels == outcome.predicted]
    rows = np.concatenate([outcome.labels[hits], classes + outcome.labels, 2 * classes + outcome.predicted])
    columns = np.concatenate([hits, examples, examples])
    members = csr_array((np.ones(len(rows)), (rows, columns)), shape=(3 * classes, len(examples)))

    def counts(weights: np.ndarray) -> ClassCounts:
        sums = np.ascontiguousarray((members @ weights.T).T)  # (R, 3C)
        return ClassCounts(*np.split(sums, 3, axis=1))

    return counts


def by_class(counts: ClassCounts) -> ByClass:
    """Precision, recall and F1 of every class."""
    hits, support, predicted = counts
    return ByClass(
        precision=_ratio(hits, predicted), recall=_ratio(hits, support), f1=_ratio(2 * hits, support + predicted)
    )


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(part, whole, out=np.zeros(part.shape), where=whole > 0)
