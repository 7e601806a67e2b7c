"""Question answering on windows of a question and its passage (Devlin et al. 2018, section 4.2)."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any, Self
from unicodedata import category

import numpy as np

from retrace.core.paths import questions_path, splits_of
from retrace.datasets.squad import Question, read_questions
from retrace.finetuning.settings import check_room
from retrace.finetuning.task import Row, Task
from retrace.results.grid import Kind
from retrace.tasks.question_answering.settings import AnswerSettings
from retrace.tokens.tokenizer import PairFormat, SubwordTokenizer, Vocabulary, load_tokenizer

JAMO = frozenset(map(chr, range(0x1160, 0x1200)))  # the letters after the first of a decomposed Korean syllable
ANYWHERE = 0.1  # share of windows drawn from anywhere in the passage, with the answer or not


@dataclass(frozen=True)
class Window:
    """[CLS] question [SEP] part of the passage [SEP], in the tokenizer's own format; positions count its tokens."""

    question: Question
    ids: np.ndarray  # (T,), int32
    spans: np.ndarray  # (T, 2): the passage's characters in each token, without leading spaces; empty outside it
    asked: slice  # the tokens of the question
    passage: slice  # the tokens of the passage
    start: int  # first and last token of the answer; 0 if the window does not contain it
    end: int
    match: np.ndarray  # (T,), int8: how each token matches the question; all 0 (no match) without `question_match`

    @property
    def segments(self) -> np.ndarray:
        """0 before the passage, then 1: (T,)."""
        return (np.arange(len(self.ids)) >= self.passage.start).astype(np.int8)


@dataclass(frozen=True)
class Span:
    """An answer, its start in the passage, its score, and the score of no answer."""

    text: str
    start: int | None  # None for a generated answer that is not in the passage
    score: float
    null_score: float


class QuestionAnswering(Task[Any]):
    """A data set in SQuAD's format: the common parts of extractive and generative tasks."""

    kind: Kind = "question_answering"

    def __init__(self, folder: Path, tokenizer: SubwordTokenizer, settings: AnswerSettings) -> None:
        self.name, self._tokenizer, self._settings = folder.name, tokenizer, settings
        self._vocabulary = Vocabulary.of(tokenizer)
        # Features cannot be reused if a model generates, or if the match embeddings, below the body, are trained.
        self.reads = "tokens" if self.head == "spans" and not settings.question_match else None
        self._questions = {part: read_questions(questions_path(folder, part)) for part in splits_of(folder)}
        self.has_test = "test" in self._questions
        # Without unanswerable training questions a model does not learn to abstain.
        self.may_abstain = any(not question.answers for question in self._questions["train"])

    @classmethod
    def read(cls, folder: Path, base: Path, settings: AnswerSettings) -> Self:
        """The task whose data is in `folder`, for the model saved in `base`.

        Raises InputError if its family cannot answer in this way, or the settings leave no room for the passage.
        """
        return cls(folder, load_tokenizer(base), settings)

    @abstractmethod
    def encoded(self, questions: Sequence[Question]) -> list[Any]:
        """The examples for these questions, in their order."""

    @abstractmethod
    def answers(self, examples: Sequence[Any], scores: Sequence[np.ndarray]) -> dict[str, Span]:
        """The answer to each question, by id, from the scores of its examples."""

    def rows(self, examples: Sequence[Any], scores: Sequence[np.ndarray]) -> list[Row]:
        """Question id, answer, its start, its score and that of no answer (None if the model never abstains).

        The start is None if the answer is empty or not in the passage.
        """
        rows = []
        for question, answer in self.answers(examples, scores).items():
            start = answer.start if answer.text else None
            null_score = answer.null_score if self.may_abstain else None
            row = {"id": question, "text": answer.text, "start": start}
            rows.append(row | {"score": answer.score, "null_score": null_score})
        return rows


@dataclass(frozen=True)
class _Encoded:
    """A question and its passage as tokens, to cut windows from."""

    question: Question
    ids: list[int]  # of the passage
    spans: np.ndarray  # (T, 2), of the passage's tokens
    asked: list[int]  # of the question
    form: PairFormat
    room: int  # for tokens of the passage
    answer: tuple[int, int] | None  # its first and last token in the passage

    def window(self, first: int) -> Window:
        """The window with the passage from token `first` on."""
        last = min(first + self.room, len(self.ids))
        asked = slice(len(self.form.before), len(self.form.before) + len(self.asked))
        head = [*self.form.before, *self.asked, *self.form.between]
        ids = [*head, *self.ids[first:last], *self.form.after]
        place = slice(len(head), len(ids) - len(self.form.after))
        spans = np.zeros((len(ids), 2), dtype=np.int32)
        spans[place] = self.spans[first:last]
        start = end = 0
        if self.answer is not None and first <= self.answer[0] and self.answer[1] < last:
            start, end = (token - first + len(head) for token in self.answer)
        match = np.zeros(len(ids), dtype=np.int8)
        return Window(self.question, np.array(ids, dtype=np.int32), spans, asked, place, start, end, match)


def window_questions(
    task: str, tokenizer: SubwordTokenizer, questions: Sequence[Question], max_length: int, stride: int,
    after_space: bool = False,
) -> Iterator[Window]:  # fmt: skip
    """Cut each question's passage into windows of `max_length` tokens that start `stride` tokens apart.

    `after_space`: the question has the ids of `ids_after_space`. Raises InputError if a window has no room for the
    passage.
    """
    for encoded in _encode(f"{task}.max_length", tokenizer, questions, max_length, after_space):
        step = min(stride, encoded.room)  # so that no token is skipped
        for first in range(0, max(1, len(encoded.ids) - encoded.room + step), step):
            yield encoded.window(first)


def draw_windows(
    task: str, tokenizer: SubwordTokenizer, questions: Sequence[Question], max_length: int
) -> Iterator[Window]:
    """One random window per question, seeded by its id: one that contains the answer or, for a tenth of them, any.

    A few sentences around the answer are enough to train on (Min et al. 2018, Efficient and Robust Question Answering
    from Minimal Context over Documents), and shorter windows leave time for more questions. Raises InputError if a
    window has no room for the passage.
    """
    for encoded in _encode(f"{task}.train_length", tokenizer, questions, max_length):
        draws, answer, room = Random(encoded.question.id), encoded.answer, encoded.room
        lowest, highest = 0, max(0, len(encoded.ids) - room)
        if answer is not None and draws.random() >= ANYWHERE and answer[1] - answer[0] < room:
            lowest, highest = max(0, answer[1] + 1 - room), min(answer[0], highest)
        yield encoded.window(draws.randint(lowest, highest))


def shortest_window(form: PairFormat) -> int:
    """The least length with room for a token of the question, which gets at most half, and one of the passage."""
    return max(2 * (len(form.before) + len(form.between) + 1), 2 * len(form.after) + 1)


def ids_after_space(tokenizer: SubwordTokenizer, text: str) -> list[int]:
    """The ids of a text as they are after a word and a space.

    Some tokenizers, such as those of the first Llamas, put a space before a whole text, even if it begins with one.
    """
    encoding = tokenizer.encode(f"a {text}", add_special_tokens=False)
    return [number for number, (_, end) in zip(encoding.ids, encoding.offsets, strict=True) if end > 1]


def _ids(tokenizer: SubwordTokenizer, text: str) -> list[int]:
    return tokenizer.encode(text, add_special_tokens=False).ids


def _encode(
    key: str, tokenizer: SubwordTokenizer, questions: Sequence[Question], max_length: int, after_space: bool = False
) -> Iterator[_Encoded]:
    form, ids = tokenizer.pair_format, ids_after_space if after_space else _ids
    check_room(key, max_length, shortest_window(form), "one token each of the question and the passage")
    most_asked = max_length // 2 - len(form.before) - len(form.between)  # a longer question may leave no room
    for context, on_it in groupby(questions, key=lambda question: question.context):
        encoding = tokenizer.encode(context, add_special_tokens=False)  # once for all its questions
        spans = _characters(encoding.offsets, context)
        for question in on_it:
            asked = ids(tokenizer, question.text)[:most_asked]
            room = max_length - tokenizer.num_special_tokens_to_add(True) - len(asked)
            yield _Encoded(question, encoding.ids, spans, asked, form, room, _answer_tokens(question, spans))


def _characters(offsets: Sequence[tuple[int, int]], context: str) -> np.ndarray:
    """The characters of each token, (T, 2), without the space that byte-level tokens begin with.

    Accents, vowel signs and the later letters of Korean syllables that no token has, as the tokenizer drops or composes
    them, belong to the token before them.
    """
    found = []
    nexts = [*(start for start, _ in offsets[1:]), len(context)]
    for (start, end), following in zip(offsets, nexts, strict=False):  # without tokens `nexts` is one longer
        while start < end and context[start].isspace():
            start += 1
        while start < end < following and (category(context[end]).startswith("M") or context[end] in JAMO):
            end += 1
        found.append((start, end))
    return np.array(found, dtype=np.int32).reshape(-1, 2)


def _answer_tokens(question: Question, spans: np.ndarray) -> tuple[int, int] | None:
    """The first and last token with characters of the first answer; None without an answer.

    An answer may begin or end within a token, or with a character that the tokenizer drops.
    """
    if not question.answers:
        return None
    start = question.answers[0].start
    end = start + len(question.answers[0].text)
    tokens = np.flatnonzero((spans[:, 0] < end) & (start < spans[:, 1]) & (spans[:, 0] < spans[:, 1]))
    return (int(tokens[0]), int(tokens[-1])) if len(tokens) else None
