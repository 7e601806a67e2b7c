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

Measure = Literal["precision", "recall", "f1"]


class ClassCounts(NamedTuple):
    """Weights of each class, (R, C), from which precision, recall, F1 and Matthews' correlation follow."""

    hits: np.ndarray  # true positives
    support: np.ndarray  # of the class
    predicted: np.ndarray  # predicted as the class


def counting(outcome: Classified) -> Callable[[np.ndarray], ClassCounts]:
    """A function of weights of examples, (R, N), that counts by class.

    An example is in two or three of the counts, so memory does not grow with the square of the number of classes, as
    it would with confusion matrices.
    """
    classes, examples = len(outcome.classes), np.arange(len(outcome))
    hits = examples[outcome.labels == outcome.predicted]
    rows = np.concatenate([outcome.labels[hits], classes + outcome.labels, 2 * classes + outcome.predicted])
    columns = np.concatenate([hits, examples, examples])
    members = csr_array((np.ones(len(rows)), (rows, columns)), shape=(3 * classes, len(examples)))

    def counts(weights: np.ndarray) -> ClassCounts:
        sums = np.ascontiguousarray((members @ weights.T).T)  # (R, 3C)
        return ClassCounts(*np.split(sums, 3, axis=1))

    return counts


def by_class(counts: ClassCounts) -> dict[Measure, np.ndarray]:
    """Precision, recall and F1 of every class, (R, C); 0 without anything to divide by, as in scikit-learn."""
    hits, support, predicted = counts
    parts: dict[Measure, tuple[np.ndarray, np.ndarray]] = {
        "precision": (hits, predicted), "recall": (hits, support), "f1": (2 * hits, support + predicted)
    }  # fmt: skip
    return {
        measure: np.divide(part, whole, out=np.zeros(part.shape), where=whole > 0)
        for measure, (part, whole) in parts.items()
    }


def figures_of(measure: Measure) -> dict[str, Figure]:
    """All figures of a measure."""
    name = "F1" if measure == "f1" else measure
    kinds = {f"{measure}_{kind}": f"{kind} {name}" for kind in ("macro", "micro", "weighted")}
    return {key: Figure("fraction", "higher", shown) for key, shown in ({measure: name} | kinds).items()}


def resampled_averages(measure: Measure, outcome: Classified) -> Resampled:
    """The figure of the second of two classes, and the means, for weights of examples; fractions."""
    counted = counting(outcome)

    def figures(weights: np.ndarray) -> dict[str, np.ndarray]:
        counts = counted(weights)
        values = by_class(counts)[measure]
        present = counts.support + counts.predicted > 0  # any example is or was predicted as the class
        total = weights.sum(axis=1)
        positive = {measure: values[:, -1]} if len(outcome.classes) == 2 else {}
        return {
            **positive,
            f"{measure}_macro": (values * present).sum(axis=1) / present.sum(axis=1),
            f"{measure}_micro": counts.hits.sum(axis=1) / total,
            f"{measure}_weighted": (values * counts.support).sum(axis=1) / total,
        }

    return figures


def shares_of(measure: Measure, outcome: Classified) -> dict[str, Share]:
    """Those that are shares of examples: of the positive class, and the means that equal the accuracy."""
    hits = np.equal(outcome.labels, outcome.predicted)
    found = {f"{measure}_micro": Share.among_all(hits)}
    if measure == "recall":  # a class's share of its examples, by its share of all
        found["recall_weighted"] = found["recall_micro"]
    among = {"precision": outcome.predicted == 1, "recall": outcome.labels == 1}.get(measure)
    if among is not None and len(outcome.classes) == 2:
        found[measure] = Share(hits & among, among)
    return found
