"""What a model decided beside what is right: all that a score looks at.

From what a model wrote down to what it decided.

What a method said from one seed, epoch by epoch.

Parts of a data set by length, scored on their own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from retrace.datasets.squad import Question


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


Row = dict[str, Any]


def decided_class(row: Row) -> int:
    """The class with the largest logit, the first of equals."""
    logits = [value for name, value in row.items() if name.startswith("logit_")]
    return logits.index(max(logits))


def decided_answer(row: Row) -> str:
    """The span, or "" where no answer scores higher; a model that may not abstain has no null score."""
    abstains = row["null_score"] is not None and row["null_score"] > row["score"]
    return "" if abstains else row["text"]


def answers_of(rows: Sequence[Row]) -> dict[str, str]:
    """Question id → decided answer."""
    return {row["id"]: decided_answer(row) for row in rows}


Outcome = TypeVar("Outcome", Classified, Answered)


@dataclass(frozen=True)
class Epoch(Generic[Outcome]):
    """Losses in nats and decisions after an epoch; epoch 0 is before training and has no training loss."""

    number: int
    training_loss: float | None
    validation_loss: float
    kept: bool  # whether it is the one that is scored
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


class Chosen(Protocol):
    """An epoch that was kept or not."""

    @property
    def kept(self) -> bool:
        """Whether the model's weights are of this one."""
        ...


Known = TypeVar("Known", bound=Chosen)


def kept_epoch(epochs: Sequence[Known]) -> Known:
    """The one that was kept."""
    (kept,) = (epoch for epoch in epochs if epoch.kept)
    return kept


PARTS = 4


def length_groups(texts: Sequence[str], unit: str) -> dict[str, np.ndarray]:
    """Up to four groups of about equal size, by words of the text: "1–8 words" → (N,), bool."""
    lengths = np.array([len(text.split()) for text in texts])
    ends = np.unique(np.quantile(lengths, np.arange(1, PARTS + 1) / PARTS, method="lower"))
    groups, first = {}, int(lengths.min())
    for end in map(int, ends):
        name = f"{first}–{end} {unit}" if end > first else f"{end} {unit}"
        groups[name] = (lengths >= first) & (lengths <= end)
        first = end + 1
    return groups
