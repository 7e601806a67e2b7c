"""A figure of each class made one: of the favourable class, and macro, micro and weighted means.

With two classes the second is the favourable one. Macro is the plain mean over the classes that occur,
weighted the mean by how often each is right, micro counts all decisions together; each example has
one class, so micro precision, recall and F1 all are the accuracy (Sokolova and Lapalme 2009).
"""

from typing import Literal

import numpy as np
from sklearn.metrics import precision_recall_fscore_support

from stages.metrics.confusion import by_class, confusions
from stages.metrics.intervals import Share
from stages.metrics.outcomes import Classified
from stages.metrics.resampling import Resampled
from stages.metrics.scales import Figure

Measure = Literal["precision", "recall", "f1"]
MEANS = ("macro", "micro", "weighted")
PLACES = {"precision": 0, "recall": 1, "f1": 2}  # in what scikit-learn returns


def averages(measure: Measure, outcome: Classified) -> dict[str, float]:
    """The figure and its means, by scikit-learn; fractions, 0 where a class has nothing to divide by."""
    found = {}
    for name, average in _names(measure, outcome):
        every = precision_recall_fscore_support(
            outcome.labels, outcome.predicted, average=average, pos_label=1, zero_division=0  # pyright: ignore
        )  # fmt: skip
        found[name] = float(every[PLACES[measure]])  # pyright: ignore[reportArgumentType] - None is of supports alone
    return found


def resampled_averages(measure: Measure, outcome: Classified) -> Resampled:
    """The same for weights of examples."""
    names = _names(measure, outcome)

    def figures(weights: np.ndarray) -> dict[str, np.ndarray]:
        matrices = confusions(outcome, weights)
        classes = by_class(matrices)
        values = getattr(classes, measure)
        total = weights.sum(axis=1)
        means = {
            "binary": values[:, -1],
            "macro": (values * classes.present).sum(axis=1) / classes.present.sum(axis=1),
            "micro": np.trace(matrices, axis1=1, axis2=2) / total,
            "weighted": (values * classes.support).sum(axis=1) / total,
        }
        return {name: means[average] for name, average in names}

    return figures


def figures_of(measure: Measure) -> dict[str, Figure]:
    """Every name that the figure can have, all fractions."""
    return dict.fromkeys([measure, *(f"{measure}_{mean}" for mean in MEANS)], Figure("fraction", "higher"))


def shares_of(measure: Measure, outcome: Classified) -> dict[str, Share]:
    """Those that are shares of examples: a class's precision and recall, and the means that are the accuracy."""
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
