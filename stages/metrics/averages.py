"""A figure of each class made one: of the favourable class, and macro, micro and weighted means.

With two classes the second is the favourable one. Macro is the plain mean over the classes that occur,
weighted the mean by how often each is right, micro counts all decisions together; each example has
one class, so micro precision, recall and F1 all are the accuracy (Sokolova and Lapalme 2009).
"""

from typing import Literal

import numpy as np

from stages.metrics.confusion import by_class, counting
from stages.metrics.intervals import Share
from stages.metrics.outcomes import Classified
from stages.metrics.resampling import Resampled
from stages.metrics.scales import Figure

Measure = Literal["precision", "recall", "f1"]
MEANS = ("macro", "micro", "weighted")


def averages(measure: Measure, outcome: Classified) -> dict[str, float]:
    """The figure and its means, as scikit-learn has them; fractions, 0 where a class has nothing to divide by."""
    figures = resampled_averages(measure, outcome)(np.ones((1, len(outcome.labels))))
    return {name: float(values[0]) for name, values in figures.items()}


def resampled_averages(measure: Measure, outcome: Classified) -> Resampled:
    """The same for weights of examples."""
    names, counted = _names(measure, outcome), counting(outcome)

    def figures(weights: np.ndarray) -> dict[str, np.ndarray]:
        counts = counted(weights)
        values = getattr(by_class(counts), measure)
        present = counts.support + counts.predicted > 0  # whether any example is of the class or was taken for it
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
