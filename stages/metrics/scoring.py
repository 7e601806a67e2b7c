"""A task's scores, baselines and health flags from rows of predictions.

Which scores are computed is data (`scores` in params.yaml); each is a file of `stages/metrics/scores`.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from stages.corpus.glue import Sentence
from stages.corpus.squad import Question
from stages.harness.plugins import load_plugin
from stages.metrics.baselines import majority, no_answer, tfidf, word_overlap
from stages.metrics.decisions import Row, answers_of, decided_class
from stages.metrics.health import answer_flags, classification_flags
from stages.metrics.outcomes import answered
from stages.metrics.scores import squad_v2

SCORES = "stages.metrics.scores"
Figures = dict[str, float]


class TaskScores(Protocol):
    """How a task is scored."""

    def baselines(self) -> dict[str, Figures]:
        """Figures of what needs no language model."""
        ...

    def of(self, rows: Sequence[Row]) -> Figures:
        """Figures of a model's predictions."""
        ...

    def flags(self, rows: Sequence[Row]) -> dict[str, bool]:
        """Signs that the model has learned nothing."""
        ...


class ClassificationScores:
    """Sentences in two classes."""

    def __init__(self, names: Sequence[str], margin: float, train: Sequence[Sentence], dev: Sequence[Sentence]) -> None:
        self._scores = [load_plugin(SCORES, name, "scores.sst2") for name in names]
        self._margin, self._train, self._dev = margin, train, dev
        self._labels = [sentence.label for sentence in dev]

    def baselines(self) -> dict[str, Figures]:
        """The majority class, and TF-IDF with logistic regression."""
        return {
            "majority": self._figures(majority(self._train, self._dev)),
            "tfidf": self._figures(tfidf(self._train, self._dev)),
        }

    def of(self, rows: Sequence[Row]) -> Figures:
        """Figures of a model's predictions, one row a sentence."""
        return self._figures([decided_class(row) for row in rows])

    def flags(self, rows: Sequence[Row]) -> dict[str, bool]:
        """One class only, or not above the majority."""
        predicted = [decided_class(row) for row in rows]
        right = [100 * _share(p, self._labels) for p in (predicted, majority(self._train, self._dev))]
        return classification_flags(predicted, right[0], right[1], self._margin)

    def _figures(self, predicted: list[int]) -> Figures:
        return _merged(score.score(self._labels, predicted) for score in self._scores)


class ReadingScores:
    """Questions on passages."""

    def __init__(self, names: Sequence[str], margin: float, questions: Sequence[Question]) -> None:
        self._scores = [load_plugin(SCORES, name, "scores.squad") for name in names]
        self._margin, self._questions = margin, questions

    def baselines(self) -> dict[str, Figures]:
        """No answer ever, and word overlap."""
        return {
            "no_answer": self._figures(no_answer(self._questions)),
            "word_overlap": self._figures(word_overlap(self._questions)),
        }

    def of(self, rows: Sequence[Row]) -> Figures:
        """Figures of a model's predictions, one row a question."""
        return self._figures(answers_of(rows))

    def flags(self, rows: Sequence[Row]) -> dict[str, bool]:
        """Empty answers, F1 without exact matches, or not above no answer."""
        answers = answers_of(rows)
        figures, silent = (squad_v2.score(answered(self._questions, a)) for a in (answers, no_answer(self._questions)))
        return answer_flags(answers, figures["f1"], figures["exact"], silent["f1"], self._margin)

    def _figures(self, answers: dict[str, str]) -> Figures:
        return _merged(score.score(answered(self._questions, answers)) for score in self._scores)


def mean_over_seeds(cells: Iterable[dict[str, Any]]) -> Figures:
    """The mean of each score; epochs and flags are no scores."""
    cells = list(cells)
    names = [name for name in cells[0] if name not in ("epoch", "flags")]
    return {name: sum(cell[name] for cell in cells) / len(cells) for name in names}


def _merged(parts: Iterable[Figures]) -> Figures:
    return {name: value for part in parts for name, value in part.items()}


def _share(predicted: Sequence[int], labels: Sequence[int]) -> float:
    return sum(p == y for p, y in zip(predicted, labels, strict=True)) / len(labels)
