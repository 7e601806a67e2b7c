"""Confusion counts; precision, recall and F1 per class, of the positive class, and as macro, micro and weighted means.

Of two classes the second is the positive one. Macro is the plain mean over the classes that occur, weighted the mean
by the number of examples, micro pools all decisions; as each example has one class, micro precision, recall and F1 all
equal the accuracy (Sokolova and Lapalme 2009).
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from retrace.evaluation.outcomes import Classified
from retrace.statistics.intervals import Resampled, Share
from retrace.statistics.scales import Figure


class ClassCounts(NamedTuple):
    """Weights of each class, (R, C), from which precision, recall, F1 and Matthews' correlation follow."""

    hits: np.ndarray  # true positives
    support: np.ndarray  # of the class
    predicted: np.ndarray  # predicted as the class


class ByClass(NamedTuple):
    """Figures of each class, (R, C); without anything to divide by 0, as in scikit-learn."""

    precision: np.ndarray
    recall: np.ndarray
    f1: np.ndarray


def confusion(outcome: Classified) -> np.ndarray:
    """The confusion matrix, rows the right classes, (C, C)."""
    classes = len(outcome.classes)
    cells = np.bincount(outcome.labels * classes + outcome.predicted, minlength=classes * classes)
    return cells.reshape(classes, classes)


def counting(outcome: Classified) -> Callable[[np.ndarray], ClassCounts]:
    """A function of weights of examples, (R, N), that counts by class.

    An example is in two or three of the counts, so memory does not grow with the square of the number of classes, as
    it would with confusion matrices.
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


Measure = Literal["precision", "recall", "f1"]
MEANS = ("macro", "micro", "weighted")


def averages(measure: Measure, outcome: Classified) -> dict[str, float]:
    """The figure of the positive class and the means, as in scikit-learn; fractions."""
    figures = resampled_averages(measure, outcome)(np.ones((1, len(outcome.labels))))
    return {name: float(values[0]) for name, values in figures.items()}


def resampled_averages(measure: Measure, outcome: Classified) -> Resampled:
    """The same for weights of examples."""
    names, counted = _names(measure, outcome), counting(outcome)

    def figures(weights: np.ndarray) -> dict[str, np.ndarray]:
        counts = counted(weights)
        values = getattr(by_class(counts), measure)
        present = counts.support + counts.predicted > 0  # any example is or was predicted as the class
        total = weights.sum(axis=1)
        means = {
            "binary": values[:, -1],
            "macro": (values * present).sum(axis=1) / present.sum(axis=1),
            "micro": counts.hits.sum(axis=1) / total,
            "weighted": (values * counts.support).sum(axis=1) / total,
        }
        return {name: means[average] for name, average in names}

    return figures


def figures_of(measure: Measure) -> dict[str, Figure]:
    """All figures of a measure."""
    return dict.fromkeys([measure, *(f"{measure}_{mean}" for mean in MEANS)], Figure("fraction", "higher"))


def shares_of(measure: Measure, outcome: Classified) -> dict[str, Share]:
    """Those that are shares of examples: of the positive class, and the means that equal the accuracy."""
    hits = np.equal(outcome.labels, outcome.predicted)
    found = {f"{measure}_micro": Share.among_all(hits)}
    if measure == "recall":  # a class's share of its examples, by its share of all
        found["recall_weighted"] = found["recall_micro"]
    asked = {"precision": outcome.predicted == 1, "recall": outcome.labels == 1}.get(measure)
    if asked is not None and len(outcome.classes) == 2:
        found[measure] = Share(hits & asked, asked)
    return found


def _names(measure: Measure, outcome: Classified) -> list[tuple[str, str]]:
    binary = [(measure, "binary")] if len(outcome.classes) == 2 else []
    return binary + [(f"{measure}_{mean}", mean) for mean in MEANS]
