"""Scoring of question answering, with no answer and word overlap as baselines; means over answerable questions.

METEOR, BLEU and ROUGE score two empty texts 0, which would count an abstention from an unanswerable question as wrong.
They are means over answerable questions only.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Self

import numpy as np
import pandas as pd

from retrace.core.paths import questions_path
from retrace.datasets.overlap import keys_of, known_rows
from retrace.datasets.squad import Question, read_questions
from retrace.evaluation.flags import answer_flags
from retrace.evaluation.outcomes import Answered, answered, length_groups
from retrace.evaluation.records import AnswerBreakdown
from retrace.statistics.intervals import Resampled, Share, mean_of, whole_shares
from retrace.statistics.scales import Flags

# An answer and the right ones → its figures. Answers recur over epochs, methods and seeds, so cache it.
OneAnswer = Callable[[str, tuple[str, ...]], dict[str, float]]


def means(outcome: Answered, of: OneAnswer) -> dict[str, float]:
    """The mean of each figure; none where no question has an answer."""
    return {name: float(values[outcome.answerable].mean()) for name, values in _values(outcome, of).items()}


def resampled_means(outcome: Answered, of: OneAnswer) -> Resampled:
    """The same for weights of questions, (R, N)."""
    values = _values(outcome, of)
    return mean_of(values, outcome.answerable) if values else lambda weights: {}


def shares_of(outcome: Answered, of: OneAnswer) -> dict[str, Share]:
    """Those that are shares of questions: every question scores 0 or 1."""
    return whole_shares(_values(outcome, of), outcome.answerable)


def _values(outcome: Answered, of: OneAnswer) -> dict[str, np.ndarray]:
    """Name → (N,), 0 where a question has no answer."""
    rows = [of(answer, golds) if golds else None for answer, golds in zip(outcome.answers, outcome.golds, strict=True)]
    names = next((row for row in rows if row is not None), {})
    return {name: np.array([row[name] if row else 0.0 for row in rows]) for name in names}


WORD = re.compile(r"\w+")
SENTENCE = re.compile(r"(?<=[.!?])\s+")
LONGEST = 4  # words of an answer of the overlap baseline


def no_answer(questions: Sequence[Question]) -> dict[str, str]:
    """No answer, to every question."""
    return {question.id: "" for question in questions}


def word_overlap(questions: Sequence[Question]) -> dict[str, str]:
    """Answers every question with words of the sentence that shares most words with it.

    The sliding-window baseline of Richardson et al. 2013, as SQuAD's authors used it, but by sentence: the answer is
    the longest run of at most four capitalised words or numbers that the question lacks, or else the last word.
    """
    return {question.id: _overlap_answer(question) for question in questions}


def _overlap_answer(question: Question) -> str:
    in_question = set(WORD.findall(question.text.lower()))
    sentences = SENTENCE.split(question.context)
    best = max(sentences, key=lambda sentence: len(in_question & set(WORD.findall(sentence.lower()))))
    runs: list[list[re.Match[str]]] = [[]]
    for match in WORD.finditer(best):
        word = match.group()
        if word.lower() not in in_question and (word[0].isupper() or word[0].isdigit()) and len(runs[-1]) < LONGEST:
            runs[-1].append(match)
        elif runs[-1]:
            runs.append([])
    run = max(runs, key=len) or list(WORD.finditer(best))[-1:]
    return best[run[0].start() : run[-1].end()] if run else best


class QuestionAnsweringTask:
    """The questions of a question-answering task, for scoring."""

    headlines: tuple[str, ...] = ("f1", "exact_match")

    notes: Mapping[str, str] = MappingProxyType({})
    given_how = "are on a passage of train"

    def __init__(
        self, train: Sequence[Question], dev: Sequence[Question], test: Sequence[Question] | None = None
    ) -> None:
        self._questions = dev if test is None else test
        self.split = "dev" if test is None else "test"
        keys, of_train, of_dev = (
            keys_of((question.context, question.text) for question in of)
            for of in (self._questions, train, [] if test is None else dev)
        )
        self.shared, self.shared_with_dev = known_rows(keys, of_train), known_rows(keys, of_dev)
        self.given = known_rows(*([passage for passage, _ in of] for of in (keys, of_train)))
        self.groups: Mapping[str, np.ndarray] = length_groups(
            [question.context for question in self._questions], "words of passage"
        )

    @classmethod
    def read(cls, source: Path, name: str, splits: Sequence[str], drawn: Sequence[int] | None) -> Self:
        """The task from the data; `splits` are train, dev and, to score the test split, test."""
        return cls(*(read_questions(questions_path(source, part, name)) for part in splits))

    def outcome(self, rows: pd.DataFrame) -> Answered:
        """Predictions, one row per question → the answer, or none where that scores higher."""
        by_id = rows.set_index("id")
        no_answer = (by_id["null_score"] - by_id["score"]).dropna()
        return answered(self._questions, by_id["text"].to_dict(), no_answer.to_dict() or None)

    def baselines(self) -> dict[str, Answered]:
        """No answer, and word overlap."""
        decided = {"no_answer": no_answer(self._questions), "word_overlap": word_overlap(self._questions)}
        return {name: answered(self._questions, given) for name, given in decided.items()}

    def flags(self, outcome: Answered) -> Flags:
        """No answer, or the same answer, to every question."""
        return answer_flags(outcome)

    def breakdown(self, outcome: Answered) -> AnswerBreakdown:
        """How many questions were answered, and how many have an answer."""
        return AnswerBreakdown(
            answered=sum(map(bool, outcome.answers)),
            answerable=sum(map(bool, outcome.golds)),
            questions=len(outcome.answers),
        )
