"""Scoring of question answering; the baselines are never answering and word overlap.

METEOR and ROUGE give two empty texts a score of 0, so a correct abstention would count as wrong. They are therefore
means over answerable questions only.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd

from retrace.core.paths import questions_path
from retrace.datasets.splits import known_rows
from retrace.datasets.squad import Question, read_questions
from retrace.datasets.words import WORD
from retrace.evaluation.metrics.squad_v2 import threshold_curve
from retrace.evaluation.outcomes import Answered, Groups, ScoredTask, answered, answers_of
from retrace.evaluation.records import AnswerBreakdown

# An answer and the gold answers → the answer's figures. Cached, as answers recur over epochs, methods and seeds.
OneAnswer = Callable[[str, tuple[str, ...]], dict[str, float]]

SENTENCE = re.compile(r"(?<=[.!?])\s+")
LONGEST = 4  # words of an answer of the overlap baseline
QUESTION_WORD = re.compile(r"\b(who|whom|whose|what|when|where|which|why|how)\b")
FEWEST, OTHER = 20, "other"  # question words with fewer questions are grouped as other


def figures_by_question(outcome: Answered, score: OneAnswer) -> dict[str, np.ndarray]:
    """Name → (N,), 0 if a question has no answer; no figure if none has one."""
    rows = [score(answer, golds) if golds else {} for answer, golds in zip(outcome.answers, outcome.golds, strict=True)]
    return {str(name): values.to_numpy() for name, values in pd.DataFrame(rows).fillna(0.0).items()}


def overlap_span(question: Question) -> tuple[int, int]:
    """Start and end in the passage of an answer from the sentence that shares most words with the question.

    The sliding-window baseline of Richardson et al. 2013, as SQuAD's authors used it, but by sentence: the answer is
    the longest run of at most four capitalised words or numbers that are not in the question, or else the last word.
    """
    in_question = set(WORD.findall(question.text.lower()))
    ends = [*(gap.span() for gap in SENTENCE.finditer(question.context)), (len(question.context),) * 2]
    sentences = [(start, end) for (_, start), (end, _) in pairwise([(0, 0), *ends])]

    def shared(sentence: tuple[int, int]) -> int:
        return len(in_question & set(WORD.findall(question.context[slice(*sentence)].lower())))

    first, last = max(sentences, key=shared)
    words = list(WORD.finditer(question.context, first, last))
    runs: list[list[re.Match[str]]] = [[]]
    for match in words:
        word = match.group()
        if word.lower() not in in_question and (word[0].isupper() or word[0].isdigit()) and len(runs[-1]) < LONGEST:
            runs[-1].append(match)
        elif runs[-1]:
            runs.append([])
    run = max(runs, key=len) or words[-1:]
    return (run[0].start(), run[-1].end()) if run else (first, last)


class QuestionAnsweringTask(ScoredTask):
    """Questions on passages, some perhaps without an answer."""

    headlines = ("f1", "exact_match")
    given_how = "are on a passage of train"

    def __init__(self, *parts: Sequence[Question]) -> None:
        """`parts` are train, dev and perhaps test."""
        rows = [[(question.context, question.text) for question in part] for part in parts]
        super().__init__(rows, "words of passage", known_rows)
        self._questions = parts[-1]
        has = np.array([bool(question.answers) for question in self._questions], dtype=bool)
        if has.any() and not has.all():
            self.groups["answer"] = {"has an answer": has, "has none": ~has}
        self.groups["question word"] = question_words([question.text for question in self._questions])

    @classmethod
    def read(cls, folder: Path, splits: Sequence[str], drawn: Sequence[int] | None) -> Self:
        """The task whose data is in `folder`; `splits` are train, dev and, to score the test split, test."""
        return cls(*(read_questions(questions_path(folder, part)) for part in splits))

    def fits(self, rows: pd.DataFrame) -> bool:
        """Whether predictions are for these questions, judging by their ids."""
        return {*rows["id"]} == {question.id for question in self._questions}

    def outcome(self, rows: pd.DataFrame) -> Answered:
        """Predictions, one row per question → the answers; the model abstains where the null score is higher."""
        return answers_of(rows, self._questions)

    @cached_property
    def baselines(self) -> dict[str, Answered]:
        """Never answering, which counts as abstaining, and word overlap."""
        empty = answered(self._questions, {question.id: "" for question in self._questions})
        nothing = replace(empty, abstained=np.ones(len(empty), dtype=bool))
        spans = [overlap_span(question) for question in self._questions]
        texts = tuple(question.context[slice(*span)] for question, span in zip(self._questions, spans, strict=True))
        overlap = replace(empty, answers=texts, starts=tuple(start for start, _ in spans))
        return {"no_answer": nothing, "word_overlap": overlap}

    def breakdown(self, outcomes: Sequence[Answered]) -> AnswerBreakdown:
        """How many questions were answered and how many have an answer; the scores by threshold."""
        return AnswerBreakdown(
            answered=float(np.mean([sum(map(bool, outcome.answers)) for outcome in outcomes])),
            answerable=int(outcomes[0].answerable.sum()),
            questions=len(outcomes[0]),
            threshold_curve=threshold_curve(outcomes),
        )


def question_words(questions: Sequence[str]) -> Groups:
    """Questions grouped by their first question word; rare words are in one group, other."""
    words = pd.Series(questions).str.lower().str.extract(QUESTION_WORD, expand=False)
    kept = words.where(words.map(words.value_counts()) >= FEWEST, OTHER)
    return {word: (kept == word).to_numpy() for word in sorted(set(kept), key=lambda word: (word == OTHER, word))}
