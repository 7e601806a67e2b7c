"""Scoring of classification tasks; the baselines are the majority class and TF-IDF with logistic regression.

Precision, recall and F1 are given for each class, for the positive class (the second of two), and as macro, micro and
weighted means. Macro is the plain mean over the classes that occur, weighted the mean by number of examples, and micro
pools all decisions. As each example has one class, micro precision, recall and F1 all equal the accuracy (Sokolova and
Lapalme 2009).
"""

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from statistics import mode
from typing import Literal, NamedTuple, Self, get_args

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix

from retrace.datasets.examples import Example, read_classes, read_examples
from retrace.datasets.splits import INSIDE, INSIDE_FIRST, given_away
from retrace.datasets.words import LETTER, MARKS, UNSPACED
from retrace.evaluation.metrics.calibration import reliability
from retrace.evaluation.outcomes import Classified, ScoredTask, classified
from retrace.evaluation.records import ClassBreakdown
from retrace.statistics.intervals import ByClass, Resampled, Share
from retrace.statistics.scales import Figure

Measure = Literal["precision", "recall", "f1"]
# What TF-IDF counts: words of two letters or more, as in scikit-learn's pattern, and characters of scripts without
# spaces; all characters of texts that have neither.
WORD, CHARACTER = rf"(?u)[{UNSPACED}]|(?<!{LETTER}){LETTER}(?:{LETTER}|[{MARKS}])+", r"\S"
MANY = 50  # classes


class ClassCounts(NamedTuple):
    """Weights by class, (R, C), from which precision, recall, F1 and Matthews' correlation follow."""

    hits: np.ndarray  # true positives
    support: np.ndarray  # of the class
    predicted: np.ndarray  # predicted as the class


def counting(outcome: Classified) -> Callable[[np.ndarray], ClassCounts]:
    """A function that counts by class, for weights of examples, (R, N).

    Each example is in two or three of the counts, so memory does not grow with the square of the number of classes, as
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


def figures_of(measure: Measure) -> dict[str, Figure]:
    """All figures of a measure."""
    name = "F1" if measure == "f1" else measure
    kinds = {f"{measure}_{kind}": f"{kind} {name}" for kind in ("macro", "micro", "weighted")}
    return {key: Figure("fraction", "higher", shown) for key, shown in ({measure: name} | kinds).items()}


def resampled_averages(measure: Measure, outcome: Classified) -> Resampled:
    """The figure of the positive class and the three means, fractions, for weights of examples.

    A class whose figure is undefined (0 / 0) counts as 0, as in scikit-learn.
    """
    counted = counting(outcome)

    def figures(weights: np.ndarray) -> dict[str, np.ndarray]:
        hits, support, predicted = counts = counted(weights)
        values = _values(measure, counts)
        present = support + predicted > 0
        total = weights.sum(axis=1)
        positive = {measure: values[:, -1]} if len(outcome.classes) == 2 else {}
        return {
            **positive,
            f"{measure}_macro": (values * present).sum(axis=1) / present.sum(axis=1),
            f"{measure}_micro": hits.sum(axis=1) / total,
            f"{measure}_weighted": (values * support).sum(axis=1) / total,
        }

    return figures


def by_class_of(measure: Measure, outcome: Classified) -> dict[str, ByClass]:
    """The figures of the classes that the macro mean averages."""
    counts = counting(outcome)(np.ones((1, len(outcome))))
    (values,), (support,), (predicted,) = _values(measure, counts), counts.support, counts.predicted
    occurs = support > 0
    # Precision is a share of what was predicted; of a class that was never predicted it is 0 by definition.
    examples = np.where(predicted > 0, predicted, support) if measure == "precision" else support
    return {f"{measure}_macro": ByClass(values[occurs], examples[occurs], int((support + predicted > 0).sum()))}


def _values(measure: Measure, counts: ClassCounts) -> np.ndarray:
    """The figure of each class, (R, C)."""
    hits, support, predicted = counts
    whole = {"precision": predicted, "recall": support, "f1": (support + predicted) / 2}[measure]
    return np.divide(hits, whole, out=np.zeros_like(hits), where=whole > 0)


def shares_of(measure: Measure, outcome: Classified) -> dict[str, Share]:
    """The figures that are shares of examples: of the positive class, and the means that equal the accuracy."""
    hits = np.equal(outcome.labels, outcome.predicted)
    found = {f"{measure}_micro": Share.among_all(hits)}
    if measure == "recall":  # weighted by support, the mean recall of the classes is the accuracy
        found["recall_weighted"] = found["recall_micro"]
    among = {"precision": outcome.predicted == 1, "recall": outcome.labels == 1}.get(measure)
    if among is not None and len(outcome.classes) == 2:
        found[measure] = Share(hits & among, among)
    return found


def of_rarer(name: str, outcome: Classified) -> dict[str, int]:
    """How many examples a figure's variance depends on: with two classes, those of the rarer; 0 if only one occurs."""
    if len(np.unique(outcome.labels)) < 2:
        return {name: 0}
    return {name: int(np.bincount(outcome.labels).min())} if len(outcome.classes) == 2 else {}


def majority(train: Sequence[Example], dev: Sequence[Example]) -> list[int]:
    """The most frequent class of the training data, for every example."""
    return [mode(example.label for example in train)] * len(dev)


def tfidf(train: Sequence[Example], dev: Sequence[Example]) -> list[int]:
    """Logistic regression on TF-IDF of words and pairs of words, with scikit-learn's defaults.

    A word has two letters or more, or is a Chinese or Japanese character; if no training text has one, characters are
    counted instead. With one class in the training data it is the majority baseline. With many classes another solver
    finds the same optimum in less memory.
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
    """Whether any training text has what TF-IDF takes for a word."""
    return any(re.search(WORD, _both_texts(example)) for example in train)


def _both_texts(example: Example) -> str:
    return example.text if example.pair is None else f"{example.text} {example.pair}"


class ClassificationTask(ScoredTask):
    """Texts, or pairs of them, and their classes."""

    headlines = ("accuracy", "f1_macro")

    def __init__(self, classes: Sequence[str], *parts: Sequence[Example], drawn: Sequence[int] | None = None) -> None:
        """`parts` are train, dev and perhaps test.

        `drawn`: numbers of the training examples that models and baselines are trained on; None for all.
        """
        in_pairs = parts[-1][0].pair is not None
        rows = [[(example.text, example.pair) for example in part] for part in parts]
        super().__init__(rows, "words of first text" if in_pairs else "words", given_away)
        self._classes, self._examples = tuple(classes), parts[-1]
        self._train = parts[0] if drawn is None else [parts[0][number] for number in drawn]
        self._labels = np.array([example.label for example in self._examples])
        self.given_how = INSIDE_FIRST if in_pairs else INSIDE
        if drawn is not None and len(drawn) < len(parts[0]):
            self.notes["majority, tfidf"] = (
                f"fitted to {len(drawn):,} of {len(parts[0]):,} training examples, those that the models of the first "
                "seed were given"
            )
        if not has_words(self._train):
            self.notes["tfidf"] = "of single characters, as no training text has a word of two letters"

    @classmethod
    def read(cls, folder: Path, splits: Sequence[str], drawn: Sequence[int] | None) -> Self:
        """The task whose data is in `folder`; `splits` are train, dev and, to score the test split, test."""
        return cls(read_classes(folder), *(read_examples(folder, part) for part in splits), drawn=drawn)

    def fits(self, rows: pd.DataFrame) -> bool:
        """Whether predictions are for these examples, judging by the labels that are stored with them."""
        return np.array_equal(rows["label"], self._labels)

    def outcome(self, rows: pd.DataFrame) -> Classified:
        """Predictions, one row per example in order → the predicted classes."""
        return classified(rows, self._labels, self._classes)

    @cached_property
    def baselines(self) -> dict[str, Classified]:
        """The majority class, and TF-IDF with logistic regression."""
        decided = {"majority": majority(self._train, self._examples), "tfidf": tfidf(self._train, self._examples)}
        return {name: Classified(self._classes, self._labels, np.array(given)) for name, given in decided.items()}

    def breakdown(self, outcomes: Sequence[Classified]) -> ClassBreakdown:
        """Confusion matrix, precision, recall and F1 of each class, and bins of confidence."""
        numbers = range(len(self._classes))
        confusions = [confusion_matrix(outcome.labels, outcome.predicted, labels=numbers) for outcome in outcomes]
        counts = [counting(outcome)(np.ones((1, len(outcome)))) for outcome in outcomes]
        measures: tuple[Measure, ...] = get_args(Measure)
        means = {measure: np.mean([_values(measure, seed)[0] for seed in counts], axis=0) for measure in measures}
        classes = pd.DataFrame(means, self._classes).assign(examples=counts[0].support[0].astype(int)).to_dict("index")
        return ClassBreakdown(
            confusion=np.mean(confusions, axis=0).tolist(), classes=classes, reliability=reliability(outcomes)
        )
