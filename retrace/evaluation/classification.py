"""Texts in classes: what was decided, beside the majority class and TF-IDF with logistic regression."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy.special import softmax

from retrace.datasets.examples import Example
from retrace.datasets.overlap import INSIDE, INSIDE_FIRST, given_away, keys_of, known_rows
from retrace.evaluation.baselines import has_words, majority, tfidf
from retrace.evaluation.confusion import by_class, confusion, counting
from retrace.evaluation.flags import class_flags
from retrace.evaluation.outcomes import Classified, length_groups, logits_of
from retrace.evaluation.records import ClassBreakdown
from retrace.statistics.scales import Flags


class ClassificationTask:
    """The examples of a classification task, for scoring."""

    headlines: tuple[str, ...] = ("accuracy", "f1_macro")

    def __init__(
        self, classes: Sequence[str], train: Sequence[Example], dev: Sequence[Example],
        test: Sequence[Example] | None = None, drawn: Sequence[int] | None = None,
    ) -> None:  # fmt: skip
        """`drawn`: numbers of the training examples that the models were given, and baselines are; None: all."""
        asked = dev if test is None else test
        self._classes, self._asked = tuple(classes), asked
        self._train = train if drawn is None else [train[number] for number in drawn]
        self._labels = np.array([example.label for example in asked])
        self.split = "dev" if test is None else "test"
        keys, of_train, of_dev = (
            keys_of((example.text, example.pair) for example in of)
            for of in (asked, train, [] if test is None else dev)
        )
        self.shared, self.shared_with_dev = known_rows(keys, of_train), known_rows(keys, of_dev)
        self.given = given_away(*([text for text, _ in of] for of in (keys, of_train)))
        self.given_how = INSIDE if asked[0].pair is None else INSIDE_FIRST
        self.groups: Mapping[str, np.ndarray] = length_groups([example.text for example in asked], "words")
        self.notes: Mapping[str, str] = self._notes(len(train))

    def outcome(self, rows: pd.DataFrame) -> Classified:
        """Predictions, one row per example in order → the class with the largest logit, the first of equals."""
        logits = logits_of(rows)
        return Classified(self._classes, self._labels, logits.argmax(axis=1), softmax(logits, axis=1))

    def baselines(self) -> dict[str, Classified]:
        """The majority class, and TF-IDF with logistic regression."""
        decided = {"majority": majority(self._train, self._asked), "tfidf": tfidf(self._train, self._asked)}
        return {name: Classified(self._classes, self._labels, np.array(given)) for name, given in decided.items()}

    def _notes(self, rows: int) -> dict[str, str]:
        notes = {}
        if len(self._train) < rows:
            notes["majority, tfidf"] = (
                f"fitted to {len(self._train):,} of {rows:,} training examples, those that the models of the first "
                "seed were given"
            )
        if not has_words(self._train):
            notes["tfidf"] = "of single characters, as no training text has a word of two letters"
        return notes

    def flags(self, outcome: Classified) -> Flags:
        """One class for all."""
        return class_flags(outcome)

    def breakdown(self, outcome: Classified) -> ClassBreakdown:
        """The confusion matrix, rows the right classes, and precision, recall and F1 of each class."""
        counts = counting(outcome)(np.ones((1, len(outcome.labels))))
        figures = by_class(counts)
        classes = {
            name: {measure: float(of[0, c]) for measure, of in figures._asdict().items()}
            | {"examples": int(counts.support[0, c])}
            for c, name in enumerate(self._classes)
        }
        return ClassBreakdown(confusion=confusion(outcome).tolist(), classes=classes)
