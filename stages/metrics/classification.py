"""Texts in classes: what was decided, beside the majority class and TF-IDF with logistic regression."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import softmax

from stages.corpus.examples import Example
from stages.corpus.overlap import given_away, keys_of, known_rows
from stages.metrics.baselines import majority, tfidf
from stages.metrics.confusion import by_class, confusions
from stages.metrics.groups import length_groups
from stages.metrics.health import Flags, class_flags
from stages.metrics.outcomes import Classified

Row = Mapping[str, Any]


class ClassificationTask:
    """The examples of a classification task, for scoring."""

    headlines: tuple[str, ...] = ("accuracy", "f1_macro")

    def __init__(self, classes: Sequence[str], train: Sequence[Example], dev: Sequence[Example]) -> None:
        self._classes, self._train, self._dev = tuple(classes), train, dev
        self._labels = np.array([example.label for example in dev])
        keys = [keys_of((example.text, example.pair) for example in of) for of in (dev, train)]
        self.shared = known_rows(*keys)
        self.given = given_away(*([text for text, _ in of] for of in keys))
        self.groups: Mapping[str, np.ndarray] = length_groups([example.text for example in dev], "words")

    def outcome(self, rows: Sequence[Row]) -> Classified:
        """Rows of predictions, one an example, in order: the class with the largest logit, the first of equals."""
        logits = np.array([[row[f"logit_{c}"] for c in range(len(self._classes))] for row in rows])
        return Classified(self._classes, self._labels, logits.argmax(axis=1), softmax(logits, axis=1))

    def baselines(self) -> dict[str, Classified]:
        """The majority class, and TF-IDF with logistic regression."""
        decided = {"majority": majority(self._train, self._dev), "tfidf": tfidf(self._train, self._dev)}
        return {name: Classified(self._classes, self._labels, np.array(given)) for name, given in decided.items()}

    def flags(self, outcome: Classified) -> Flags:
        """One class for all."""
        return class_flags(outcome)

    def breakdown(self, outcome: Classified) -> dict[str, Any]:
        """The confusion matrix, rows the right classes, and precision, recall and F1 of each class."""
        matrices = confusions(outcome, np.ones((1, len(outcome.labels))))
        figures = by_class(matrices)
        return {
            "confusion": matrices[0].astype(int).tolist(),
            "classes": {
                name: {measure: float(getattr(figures, measure)[0, c]) for measure in ("precision", "recall", "f1")}
                | {"examples": int(figures.support[0, c])}
                for c, name in enumerate(self._classes)
            },
        }
