"""A question with as much of its passage as fits, in overlapping windows (Devlin et al. 2018, section 4.2)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from tokenizers import Encoding, Tokenizer

from stages.corpus.squad import Question
from stages.corpus.tokenizer import SEP, token_id


@dataclass(frozen=True)
class Window:
    """[CLS] question [SEP] part of the passage [SEP]; positions are tokens of the window."""

    question: Question
    ids: np.ndarray  # (T,), int32
    spans: np.ndarray  # (T, 2): characters of the passage that a token covers; empty outside the passage
    passage: slice  # the tokens of the passage
    start: int  # first and last token of the answer; 0, [CLS], where the window holds no answer
    end: int

    @property
    def segments(self) -> np.ndarray:
        """0 up to the first [SEP], 1 from the passage on: (T,)."""
        return (np.arange(len(self.ids)) >= self.passage.start).astype(np.int8)


def window_questions(
    tokenizer: Tokenizer, questions: Sequence[Question], max_length: int, stride: int
) -> Iterator[Window]:
    """Cut each question's passage into windows of `max_length` tokens, each `stride` after the one before."""
    sep = token_id(tokenizer, SEP)
    for context, together in groupby(questions, key=lambda question: question.context):
        passage = tokenizer.encode(context, add_special_tokens=False)  # once for all its questions
        for question in together:
            yield from _windows(tokenizer.encode(question.text), passage, question, sep, max_length, stride)


def _windows(
    asked: Encoding, passage: Encoding, question: Question, sep: int, max_length: int, stride: int
) -> Iterator[Window]:
    # A question longer than half a window would leave no room to read in.
    head = [*asked.ids[: max_length // 2 - 1], sep] if len(asked.ids) > max_length // 2 else asked.ids
    room = max_length - len(head) - 1
    offsets = np.array(passage.offsets, dtype=np.int32).reshape(-1, 2)
    first = 0
    while True:
        last = min(first + room, len(passage.ids))
        spans = np.zeros((len(head) + last - first + 1, 2), dtype=np.int32)
        spans[len(head) : -1] = offsets[first:last]
        start, end = _answer_tokens(question, spans, len(head))
        yield Window(
            question=question,
            ids=np.array([*head, *passage.ids[first:last], sep], dtype=np.int32),
            spans=spans,
            passage=slice(len(head), len(head) + last - first),
            start=start,
            end=end,
        )
        if last == len(passage.ids):
            return
        first += min(stride, room)  # never past tokens that no window holds


def _answer_tokens(question: Question, spans: np.ndarray, first: int) -> tuple[int, int]:
    """The tokens that cover the first answer, or [CLS] twice where they are not all in the window."""
    if not question.answers:
        return 0, 0
    start = question.answers[0].start
    end = start + len(question.answers[0].text)
    starts = np.flatnonzero((spans[:, 0] <= start) & (start < spans[:, 1]))
    ends = np.flatnonzero((spans[:, 0] < end) & (end <= spans[:, 1]))
    if len(starts) == 0 or len(ends) == 0 or starts[0] < first:
        return 0, 0
    return int(starts[0]), int(ends[-1])
