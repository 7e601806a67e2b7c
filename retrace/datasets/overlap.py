"""Leakage between splits: rows that are in both, and texts of one split that are contained in texts of the other.

Words are compared without case, accents and white space, as a lower-case tokenizer does.
"""

import re
import unicodedata
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

INSIDE = "lie word for word in a text of train, or half of their words are one"
INSIDE_FIRST = "have a first text that lies word for word in one of train, or half of whose words are one"  # of pairs
LONG = 4  # words; shorter texts, such as "the film", are in many others by chance
Words = tuple[str, ...]
Key = tuple[Words, Words | None]

_SIGNS = "\u3040-\u30ff\u3400-\u9fff"  # Japanese and Chinese, whose words no space separates
_WORD = re.compile(rf"[{_SIGNS}]|[^\W{_SIGNS}]+|[^\w\s]")


def words_of(text: str) -> Words:
    """The text's words and punctuation marks, by which it is compared."""
    plain = text.lower()
    if not plain.isascii():
        plain = "".join(sign for sign in unicodedata.normalize("NFD", plain) if not unicodedata.combining(sign))
        plain = unicodedata.normalize("NFC", plain)  # syllables of Hangul in one
    return tuple(_WORD.findall(plain))


def keys_of(rows: Iterable[tuple[str, str | None]]) -> list[Key]:
    """Words of rows of one text or two, by which they are compared."""
    found = list(rows)
    words = {text: words_of(text) for row in found for text in row if text is not None}
    return [(words[first], None if second is None else words[second]) for first, second in found]


def known_rows(rows: Sequence[Hashable], training: Sequence[Hashable]) -> np.ndarray:
    """Which rows are in the training data too: (N,), bool."""
    known = set(training)
    return np.array([row in known for row in rows], dtype=bool)


def given_away(texts: Sequence[Words], training: Sequence[Words]) -> np.ndarray:
    """Which texts are part of a training text, or consist for at least half of their words of one: (N,), bool.

    Such a training text within a text has LONG words or more. A text without words never counts.
    """
    index = PhraseIndex.of([*training, *texts])
    places_before = np.append(0, np.cumsum(index.owners < len(training)))  # of training texts
    held = np.zeros(len(index.owners), dtype=np.int64)  # by place: words of the longest training text from there on
    inside = np.zeros(len(index.lengths), dtype=bool)
    for row in sorted(index.ranges, key=lambda row: index.lengths[row]):
        first, last = index.ranges[row]
        inside[row] = places_before[last] > places_before[first]
        if row < len(training) and index.lengths[row] >= LONG:
            held[first:last] = index.lengths[row]
    half = (held > 0) & (2 * held >= index.lengths[index.owners])
    inside[index.owners[half]] = True
    return inside[len(training) :]


def shared_finding(shared: np.ndarray, what: str, part: str, training: str = "train") -> list[str]:
    """A line on the rows (N,), bool, of a split that are in another split too, if there are any."""
    if not shared.any():
        return []
    return [f"{int(shared.sum()):,} of {len(shared):,} {what} of {part} are in {training} too"]


def given_away_finding(given: np.ndarray, shared: np.ndarray, what: str, part: str, how: str = INSIDE) -> list[str]:
    """A line on the rows (N,), bool, of a split that the training data gives away, if they are more than the shared."""
    if not (given & ~shared).any():
        return []
    count = f"{int(given.sum()):,} of {len(given):,} {what} of {part}"
    return [f"{count} {how}"]


@dataclass(frozen=True)
class PhraseIndex:
    """A suffix array of several texts: all places, sorted by the words from there on; equal phrases are adjacent."""

    owners: np.ndarray  # the text that each place is in, by its number
    ranges: dict[int, tuple[int, int]]  # by text: first place where it occurs, and end; texts without words have none
    lengths: np.ndarray  # of the texts, in words

    @classmethod
    def of(cls, texts: Sequence[Words]) -> "PhraseIndex":
        """The index of these texts."""
        numbers: dict[str, int] = {}
        words = array("i")
        for text in texts:
            words.extend(numbers.setdefault(word, len(numbers) + 1) for word in text)
            words.append(0)  # where a text ends
        lengths = np.array([len(text) for text in texts], dtype=np.int64)
        starts = np.append(0, np.cumsum(lengths + 1))
        most = int(np.sort(np.append(lengths, (1, 1)))[-2])  # what is longer lies in no other text
        order = _sorted_places(np.array(words, dtype=np.int64), most)
        places = array("i", order.astype(np.int32).tobytes())
        ranges = {}
        for row in np.flatnonzero(lengths).tolist():
            start, size = int(starts[row]), int(lengths[row])
            first = places.index(start) if size > most else 0
            ranges[row] = (first, first + 1) if size > most else _range(places, words, words[start : start + size])
        return cls(np.repeat(np.arange(len(texts)), lengths + 1)[order], ranges, lengths)


def _range(places: "array[int]", words: "array[int]", text: "array[int]") -> tuple[int, int]:
    size = len(text)
    first = bisect_left(places, text, key=lambda place: words[place : place + size])
    return first, bisect_right(places, text, first, key=lambda place: words[place : place + size])


def _sorted_places(words: np.ndarray, longest: int) -> np.ndarray:
    """Places by the `longest` words or more from there on, by prefix doubling (Manber and Myers 1993)."""
    rank, known = words, 1  # the rank of each place by the `known` words from there on
    while known < longest:
        after = np.zeros_like(rank)
        after[:-known] = rank[known:] + 1
        rank = np.unique(rank * (rank.max() + 2) + after, return_inverse=True)[1]
        known *= 2
    return np.argsort(rank, kind="stable")
