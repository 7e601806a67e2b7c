"""What a model decided beside what is right: all that a score looks at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stages.corpus.squad import Question


@dataclass(frozen=True)
class Classified:
    """One decided class an example."""

    classes: tuple[str, ...]  # names, by number
    labels: np.ndarray  # (N,), the right classes
    predicted: np.ndarray  # (N,)
    probabilities: np.ndarray | None = None  # (N, C), of a model that gives them; each row sums to 1

    @property
    def fewest(self) -> int:
        """Examples of the rarest class that there is: as many decide of a figure of all classes."""
        return int(np.bincount(self.labels)[np.unique(self.labels)].min())


@dataclass(frozen=True)
class Answered:
    """One decided answer a question, "" for none."""

    golds: tuple[tuple[str, ...], ...]  # N tuples of right answers, empty where the question has none
    answers: tuple[str, ...]  # (N,)
    spans: tuple[str, ...] | None = None  # (N,), what the model would answer had it to, of one that may abstain
    no_answer: np.ndarray | None = None  # (N,), the higher, the rather it would not; on any scale

    @property
    def answerable(self) -> np.ndarray:
        """(N,), whether the question has an answer."""
        return np.array([bool(golds) for golds in self.golds], dtype=bool)

    @property
    def fewest(self) -> int:
        """Questions that have an answer, or all where none has one."""
        return int(self.answerable.sum()) or len(self.golds)


def answered(
    questions: Sequence[Question],
    spans: Mapping[str, str],
    no_answer: Mapping[str, float] | None = None,
    threshold: float = 0.0,
) -> Answered:
    """The outcome of answers by question id; a question without one is left out.

    Where `no_answer`, which has every answered id, is above `threshold`, the model abstains.
    """
    asked = [question for question in questions if question.id in spans]
    golds = tuple(tuple(answer.text for answer in question.answers) for question in asked)
    texts = tuple(spans[question.id] for question in asked)
    if no_answer is None:
        return Answered(golds, texts)
    values = np.array([no_answer[question.id] for question in asked], dtype=np.float64)
    answers = tuple("" if value > threshold else text for text, value in zip(texts, values, strict=True))
    return Answered(golds, answers, texts, values)
