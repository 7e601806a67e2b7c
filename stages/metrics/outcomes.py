"""What a model decided beside what is right: all that a score looks at."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Classified:
    """One decided class an example."""

    classes: tuple[str, ...]  # names, by number
    labels: np.ndarray  # (N,), the right classes
    predicted: np.ndarray  # (N,)
    probabilities: np.ndarray | None = None  # (N, C), of a model that gives them; each row sums to 1


@dataclass(frozen=True)
class Answered:
    """One decided answer a question, "" for none."""

    golds: tuple[tuple[str, ...], ...]  # N tuples of right answers, empty where the question has none
    answers: tuple[str, ...]  # (N,)
    spans: tuple[str, ...] | None = None  # (N,), what the model would answer had it to, of one that may abstain
    no_answer: np.ndarray | None = None  # (N,), the higher, the rather it would not; on any scale
