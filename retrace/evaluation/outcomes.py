"""What metrics are computed from: decided classes or answers beside the right ones; by epoch, and by length of text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import pandas as pd

from retrace.datasets.squad import Question
from retrace.results.predictions import LOGIT, kept_epoch


@dataclass(frozen=True)
class Classified:
    """One decided class an example."""

    classes: tuple[str, ...]  # names, by number
    labels: np.ndarray  # (N,), the right classes
    predicted: np.ndarray  # (N,)
    probabilities: np.ndarray | None = None  # (N, C), of a model that gives them; each row sums to 1

    @property
    def fewest(self) -> int:
        """Examples of the rarest class, on which a figure over all classes depends."""
        return int(np.bincount(self.labels)[np.unique(self.labels)].min())


@dataclass(frozen=True)
class Answered:
    """One decided answer a question, "" for none."""

    golds: tuple[tuple[str, ...], ...]  # N tuples of right answers, empty where the question has none
    answers: tuple[str, ...]  # (N,)
    spans: tuple[str, ...] | None = None  # (N,), the best answer other than none, of a model that may abstain
    no_answer: np.ndarray | None = None  # (N,), score of no answer less that of the span, on any scale

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
    """The outcome of answers by question id; questions without one are left out.

    The model abstains where `no_answer`, by id, is above `threshold`.
    """
    asked = [question for question in questions if question.id in spans]
    golds = tuple(tuple(answer.text for answer in question.answers) for question in asked)
    texts = tuple(spans[question.id] for question in asked)
    if no_answer is None:
        return Answered(golds, texts)
    values = np.array([no_answer[question.id] for question in asked], dtype=np.float64)
    answers = tuple("" if value > threshold else text for text, value in zip(texts, values, strict=True))
    return Answered(golds, answers, texts, values)


def logits_of(rows: pd.DataFrame) -> np.ndarray:
    """The logits of a classifier's predictions, (N, C)."""
    return rows[[name for name in rows if str(name).startswith(LOGIT)]].to_numpy()


def decided_answers(rows: pd.DataFrame) -> dict[str, str]:
    """Question id → the span, or "" where no answer scores higher; a model that may not abstain has no null score."""
    return dict(zip(rows["id"], rows["text"].mask(rows["null_score"] > rows["score"], ""), strict=True))


Outcome = TypeVar("Outcome", Classified, Answered)


@dataclass(frozen=True)
class Epoch(Generic[Outcome]):
    """Losses in nats and the outcome after an epoch; epoch 0 is before training and has no training loss."""

    number: int
    training_loss: float | None
    validation_loss: float
    kept: bool  # whether this epoch is scored
    outcome: Outcome


@dataclass(frozen=True)
class MethodRun(Generic[Outcome]):
    """One method's predictions with one seed, per epoch."""

    method: str
    seed: int
    epochs: tuple[Epoch[Outcome], ...]

    @property
    def before(self) -> Epoch[Outcome]:
        """The model before training."""
        return self.epochs[0]

    @property
    def kept(self) -> Epoch[Outcome]:
        """The epoch that is scored."""
        return kept_epoch(self.epochs)


PARTS = 4


def length_groups(texts: Sequence[str], unit: str) -> dict[str, np.ndarray]:
    """Up to four groups of about equal size, by words of the text: "1–8 words" → (N,), bool."""
    lengths = np.array([len(text.split()) for text in texts])
    ends = np.unique(np.quantile(lengths, np.arange(1, PARTS + 1) / PARTS, method="lower")).astype(int)
    first, groups = int(lengths.min()), {}
    for end in ends.tolist():
        name = f"{first}–{end} {unit}" if end > first else f"{end} {unit}"
        groups[name] = (lengths >= first) & (lengths <= end)
        first = end + 1
    return groups
