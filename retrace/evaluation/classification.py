"""Scoring of classification tasks, with the majority class and TF-IDF with logistic regression as baselines."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd
from scipy.special import softmax
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix

from retrace.datasets.examples import Example, read_classes, read_examples
from retrace.datasets.splits import INSIDE, INSIDE_FIRST, given_away
from retrace.evaluation.confusion import by_class, counting
from retrace.evaluation.metrics.calibration import reliability
from retrace.evaluation.outcomes import Classified, ScoredTask, logits_of
from retrace.evaluation.records import ClassBreakdown

WORD, CHARACTER = r"(?u)\b\w\w+\b", r"\S"  # scikit-learn's pattern, and where no text matches it

MANY = 50  # classes


def majority(train: Sequence[Example], dev: Sequence[Example]) -> list[int]:
    """The most frequent class of the training data, for every example."""
    most = Counter(example.label for example in train).most_common(1)[0][0]
    return [most] * len(dev)


def tfidf(train: Sequence[Example], dev: Sequence[Example]) -> list[int]:
    """Logistic regression on TF-IDF of words and pairs of words, with scikit-learn's defaults.

    A word has two letters or more; if no training text has one, characters are counted instead. With one class in the
    training data it is the majority baseline. With many classes the same optimum is found in another way, which takes
    a third of the memory.
    """
    classes = {example.label for example in train}
    if len(classes) < 2:
        return majority(train, dev)
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), token_pattern=WORD if has_words(train) else CHARACTER)
    features = vectorizer.fit_transform([_both_texts(example) for example in train])
    solver = "newton-cg" if len(classes) > MANY else "lbfgs"
    model = LogisticRegression(max_iter=1000, solver=solver).fit(features, [example.label for example in train])
    return model.predict(vectorizer.transform([_both_texts(example) for example in dev])).tolist()


def has_words(train: Sequence[Example]) -> bool:
    """Whether a training text has a word as TF-IDF counts them."""
    return any(re.search(WORD, _both_texts(example)) for example in train)


def _both_texts(example: Example) -> str:
    return example.text if example.pair is None else f"{example.text} {example.pair}"


class ClassificationTask(ScoredTask):
    """Texts, or pairs of them, and their classes."""

    headlines = ("accuracy", "f1_macro")

    def __init__(
        self, classes: Sequence[str], train: Sequence[Example], dev: Sequence[Example],
        test: Sequence[Example] | None = None, drawn: Sequence[int] | None = None,
    ) -> None:  # fmt: skip
        """`drawn`: numbers of the training examples that models and baselines are trained on; None for all."""
        parts = [part for part in (train, dev, test) if part is not None]
        super().__init__([[(example.text, example.pair) for example in part] for part in parts], "words", given_away)
        self._classes, self._examples = tuple(classes), parts[-1]
        self._train = train if drawn is None else [train[number] for number in drawn]
        self._labels = np.array([example.label for example in self._examples])
        self.given_how = INSIDE if self._examples[0].pair is None else INSIDE_FIRST
        self.notes = self._notes(len(train))

    @classmethod
    def read(cls, source: Path, name: str, splits: Sequence[str], drawn: Sequence[int] | None) -> Self:
        """The task from the data; `splits` are train, dev and, to score the test split, test."""
        return cls(read_classes(source, name), *(read_examples(source, name, part) for part in splits), drawn=drawn)

    def outcome(self, rows: pd.DataFrame) -> Classified:
        """Predictions, one row per example in order → the class with the largest logit, the first of equals."""
        logits = logits_of(rows)
        return Classified(self._classes, self._labels, logits.argmax(axis=1), softmax(logits, axis=1))

    @cached_property
    def baselines(self) -> dict[str, Classified]:
        """Majority class, and TF-IDF with logistic regression."""
        decided = {"majority": majority(self._train, self._examples), "tfidf": tfidf(self._train, self._examples)}
        return {name: Classified(self._classes, self._labels, np.array(given)) for name, given in decided.items()}

    def breakdown(self, outcomes: Sequence[Classified]) -> ClassBreakdown:
        """Confusion matrix, precision, recall and F1 of each class, and bins of confidence."""
        figures = [by_class(counting(outcome)(np.ones((1, len(outcome))))) for outcome in outcomes]
        means = {measure: np.mean([of[measure][0] for of in figures], axis=0) for measure in figures[0]}
        numbers = range(len(self._classes))
        confusions = [confusion_matrix(of.labels, of.predicted, labels=numbers) for of in outcomes]
        classes = {
            name: {measure: float(of[c]) for measure, of in means.items()}
            | {"examples": int((self._labels == c).sum())}
            for c, name in enumerate(self._classes)
        }
        return ClassBreakdown(
            confusion=np.mean(confusions, axis=0).tolist(), classes=classes, reliability=reliability(outcomes)
        )

    def _notes(self, rows: int) -> Mapping[str, str]:
        notes = {}
        if len(self._train) < rows:
            notes["majority, tfidf"] = (
                f"fitted to {len(self._train):,} of {rows:,} training examples, those that the models of the first "
                "seed were given"
            )
        if not has_words(self._train):
            notes["tfidf"] = "of single characters, as no training text has a word of two letters"
        return notes
