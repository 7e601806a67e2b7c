"""Question answering by windows of a question and its passage (Devlin et al. 2018, section 4.2), and which words match.

Matches are graded after the exact-match feature of Chen et al. 2017: a common word is a hint, a rare word a strong one,
and words with the same beginning are often forms of one word.
"""

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any, Self

import numpy as np

from retrace.core.paths import questions_path, splits_of
from retrace.datasets.squad import Question, read_questions
from retrace.finetuning.settings import check_length
from retrace.finetuning.task import Row
from retrace.results.grid import Kind
from retrace.tasks.question_answering.settings import AnswerSettings, ReadingSettings
from retrace.tokens.tokenizer import PairFormat, SubwordTokenizer, Vocabulary, load_tokenizer

NONE, COMMON, MIDDLING, RARE, SAME_BEGINNING = range(5)
KINDS = 5
BEGINNING = 5  # letters
ANYWHERE = 0.1  # share of the drawn windows that may miss the answer, as windows of a long passage do
_WORD = re.compile(r"[^\W_]+")
COMMON_SHARE, RARE_SHARE = 1e-3, 1e-5  # of all words of the training passages


class WordFrequencies:
    """Frequencies of words in the training passages."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._counts = Counter(word for text in texts for word in split_words(text)[0])
        self._total = max(1, sum(self._counts.values()))

    def grade(self, word: str) -> int:
        """COMMON, MIDDLING or RARE."""
        share = self._counts[word] / self._total
        return COMMON if share > COMMON_SHARE else MIDDLING if share > RARE_SHARE else RARE


@lru_cache(maxsize=4096)
def split_words(text: str) -> tuple[list[str], np.ndarray]:
    """Lower-cased runs of letters and digits, and the number of each character's word, or -1."""
    owner = np.full(len(text), -1, dtype=np.int32)
    words = []
    for number, match in enumerate(_WORD.finditer(text)):
        words.append(match.group().lower())
        owner[match.start() : match.end()] = number
    return words, owner


def match_kinds(question: str, passage: str, frequencies: WordFrequencies) -> np.ndarray:
    """For each character of the passage, how its word matches the question: (characters,), int8."""
    asked = set(split_words(question)[0])
    beginnings = {word[:BEGINNING] for word in asked if len(word) >= BEGINNING}
    words, owner = split_words(passage)
    kinds = np.array([*(_kind(word, asked, beginnings, frequencies) for word in words), NONE], dtype=np.int8)
    return kinds[owner]  # -1 takes the last one, NONE


def _kind(word: str, asked: set[str], beginnings: set[str], frequencies: WordFrequencies) -> int:
    if word in asked:
        return frequencies.grade(word)
    return SAME_BEGINNING if len(word) >= BEGINNING and word[:BEGINNING] in beginnings else NONE


@dataclass(frozen=True)
class Window:
    """[CLS] question [SEP] part of the passage [SEP], in the tokenizer's own format; positions are tokens of it."""

    question: Question
    ids: np.ndarray  # (T,), int32
    spans: np.ndarray  # (T, 2): characters of the passage that a token covers, no space first; empty outside it
    asked: slice  # the tokens of the question
    passage: slice  # the tokens of the passage
    start: int  # first and last token of the answer; 0, where the window holds no answer
    end: int
    match: np.ndarray  # (T,), int8: how each token matches the question; NONE, where that is not asked

    @property
    def segments(self) -> np.ndarray:
        """0 up to the passage, 1 from there on: (T,)."""
        return (np.arange(len(self.ids)) >= self.passage.start).astype(np.int8)


@dataclass(frozen=True)
class Span:
    """An answer, where it starts in the passage, its score, and the score of no answer."""

    text: str
    start: int | None  # None of a generated answer that is no part of the passage
    score: float
    null_score: float


class QuestionAnswering(ABC):
    """A data set in SQuAD's format: what the tasks of extractive and generative models share."""

    kind: Kind = "question_answering"
    classes: tuple[str, ...] = ()

    def __init__(
        self, name: str, source: Path, tokenizer: SubwordTokenizer, max_length: int, settings: ReadingSettings
    ) -> None:
        self.name = name
        self._tokenizer, self._max_length, self._settings = tokenizer, max_length, settings
        self._pad = Vocabulary.of(tokenizer).pad
        self._questions = {part: read_questions(questions_path(source, part, name)) for part in splits_of(source, name)}
        self.has_test = "test" in self._questions
        # Without unanswerable questions in training a model never learns to abstain.
        self.may_abstain = any(not question.answers for question in self._questions["train"])

    @classmethod
    def read(cls, name: str, source: Path, base: Path, settings: AnswerSettings) -> Self:
        """The task for the model saved in `base`.

        Raises InputError where its family cannot answer so, or where there is no room to read.
        """
        return cls(name, source, load_tokenizer(base), settings.max_length, settings)

    @abstractmethod
    def encoded(self, questions: Sequence[Question]) -> list[Any]:
        """What a model is given of these questions, in their order, to answer them."""

    @abstractmethod
    def answers(self, examples: Sequence[Any], scores: Sequence[np.ndarray]) -> dict[str, Span]:
        """The answer to each question, by id, from the scores of what `encoded` gave."""

    def rows(self, examples: Sequence[Any], scores: Sequence[np.ndarray]) -> list[Row]:
        """Question id, answer and its start, its score and that of no answer (None if the model never abstains).

        The start is None where the answer is empty or no part of the passage.
        """
        rows = []
        for question, of in self.answers(examples, scores).items():
            start, null = of.start if of.text else None, of.null_score if self.may_abstain else None
            rows.append({"id": question, "text": of.text, "start": start, "score": of.score, "null_score": null})
        return rows


@dataclass(frozen=True)
class _Passage:
    """The tokens of a passage, and the characters that each covers, (T, 2)."""

    ids: list[int]
    offsets: np.ndarray


@dataclass(frozen=True)
class _Frame:
    """What the windows of a question share: what is around the passage, how many of its tokens fit, the answer."""

    head: list[int]
    tail: list[int]
    asked: slice
    room: int
    answer: tuple[int, int] | None  # first and last token of the passage


def window_questions(
    task: str, tokenizer: SubwordTokenizer, questions: Sequence[Question], max_length: int, stride: int, lead: str = ""
) -> Iterator[Window]:
    """Cut each question's passage into windows of `max_length` tokens that start `stride` tokens apart.

    `lead` is put before the question. Raises InputError if a window has no room for the passage.
    """
    for question, passage, frame in _framed(task, tokenizer, questions, max_length, lead):
        first = 0
        while True:
            yield _cut(question, passage, frame, first)
            if first + frame.room >= len(passage.ids):
                break
            first += min(stride, frame.room)  # no token is skipped


def draw_windows(
    task: str, tokenizer: SubwordTokenizer, questions: Sequence[Question], max_length: int
) -> Iterator[Window]:
    """One window of each question, drawn from its id: of those that hold the answer, or for a tenth, of all.

    A few sentences around the answer are enough to train on (Min et al. 2018, Efficient and Robust Question Answering
    from Minimal Context over Documents), and shorter windows leave time for more questions. Raises InputError if a
    window has no room for the passage.
    """
    for question, passage, frame in _framed(task, tokenizer, questions, max_length):
        draws = Random(question.id)
        lowest, highest = 0, max(0, len(passage.ids) - frame.room)
        answer = frame.answer
        if answer is not None and draws.random() >= ANYWHERE and answer[1] - answer[0] < frame.room:
            lowest, highest = max(0, answer[1] + 1 - frame.room), min(answer[0], highest)
        yield _cut(question, passage, frame, draws.randint(lowest, highest))


def shortest_window(form: PairFormat) -> int:
    """The fewest tokens of a window with one of the question, which gets at most half of it, and one of the passage."""
    return max(2 * (len(form.before) + len(form.between) + 1), 2 * len(form.after) + 1)


def _framed(
    task: str, tokenizer: SubwordTokenizer, questions: Sequence[Question], max_length: int, lead: str = ""
) -> Iterator[tuple[Question, _Passage, _Frame]]:
    form = tokenizer.pair_format
    check_length(task, max_length, shortest_window(form), "a token each of question and passage")
    for context, on_it in groupby(questions, key=lambda question: question.context):
        encoding = tokenizer.encode(context, add_special_tokens=False)  # once for all its questions
        passage = _Passage(encoding.ids, _without_spaces(encoding.offsets, context))
        for question in on_it:
            asked = tokenizer.encode(lead + question.text, add_special_tokens=False).ids
            yield question, passage, _frame(asked, form, max_length, _answer_tokens(question, passage.offsets))


def _frame(asked: list[int], form: PairFormat, max_length: int, answer: tuple[int, int] | None) -> _Frame:
    # A question longer than half a window would leave no room for the passage.
    asked = asked[: max(0, max_length // 2 - len(form.before) - len(form.between))]
    head, tail = [*form.before, *asked, *form.between], list(form.after)
    place = slice(len(form.before), len(form.before) + len(asked))
    return _Frame(head, tail, place, max_length - len(head) - len(tail), answer)


def _cut(question: Question, passage: _Passage, frame: _Frame, first: int) -> Window:
    """The window with the passage from token `first` on."""
    last = min(first + frame.room, len(passage.ids))
    ids = [*frame.head, *passage.ids[first:last], *frame.tail]
    place = slice(len(frame.head), len(ids) - len(frame.tail))
    spans = np.zeros((len(ids), 2), dtype=np.int32)
    spans[place] = passage.offsets[first:last]
    start = end = 0
    answer = frame.answer
    if answer is not None and first <= answer[0] and answer[1] < last:
        start, end = (token - first + len(frame.head) for token in answer)
    return Window(
        question=question,
        ids=np.array(ids, dtype=np.int32),
        spans=spans,
        asked=frame.asked,
        passage=place,
        start=start,
        end=end,
        match=np.full(len(ids), NONE, dtype=np.int8),
    )


def _without_spaces(offsets: Sequence[tuple[int, int]], context: str) -> np.ndarray:
    """The characters that tokens cover, (T, 2), without the space that byte-level tokens begin with."""
    found = np.array(offsets, dtype=np.int32).reshape(-1, 2)
    for token, (start, end) in enumerate(offsets):
        while start < end and context[start].isspace():
            start += 1
        found[token, 0] = start
    return found


def _answer_tokens(question: Question, offsets: np.ndarray) -> tuple[int, int] | None:
    """The first and last token with a character of the first answer; None without an answer.

    An answer may begin or end within a token, or with a character that the tokenizer drops.
    """
    if not question.answers:
        return None
    start = question.answers[0].start
    end = start + len(question.answers[0].text)
    tokens = np.flatnonzero((offsets[:, 0] < end) & (start < offsets[:, 1]) & (offsets[:, 0] < offsets[:, 1]))
    return (int(tokens[0]), int(tokens[-1])) if len(tokens) else None
