"""Splits of a data set: rows and texts that they share, and rows held out for validation so that they share little.

Words are compared without case, accents and white space, as a lower-case tokenizer does.
"""

import random
import re
import unicodedata
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from retrace.core.errors import InputError
from retrace.core.files import numbered_lines, read_json, write_json, write_text
from retrace.datasets.examples import read_sentences
from retrace.datasets.settings import SplitBy
from retrace.datasets.squad import read_questions

INSIDE = "are part of a training text, or one makes up half of their words or more"
INSIDE_FIRST = "have a first text that is part of one of train, or one makes up half of its words or more"  # of pairs
LONG = 4  # words; shorter texts, such as "the film", are in many others by chance
LOOSE = -1  # the group of a short text that lies in texts of several groups
Words = tuple[str, ...]
Key = tuple[Words, Words | None]
Counted = tuple[dict[str, int], list[str]]  # counts, and findings, one line each
Item = TypeVar("Item")

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


def count_shared(keys: Mapping[str, Sequence[Hashable]], what: str) -> Counted:
    """How many rows of each split are in an earlier one too, as `dev in train`; `what` the rows are, in findings."""
    counts, findings = {}, []
    for earlier, later in combinations(keys, 2):
        shared = known_rows(keys[later], keys[earlier])
        counts[f"{later} in {earlier}"] = int(shared.sum())
        findings += shared_finding(shared, what, later, earlier)
    return counts, findings


def count_given_away(keys: Mapping[str, Sequence[Key]], what: str) -> Counted:
    """How many rows of each split but `train` have a first text that `train` gives away."""
    counts, findings, train = {}, [], [text for text, _ in keys["train"]]
    for part, rows in keys.items():
        if part != "train":
            given = given_away([text for text, _ in rows], train)
            counts[part] = int(given.sum())
            how = INSIDE if rows[0][1] is None else INSIDE_FIRST
            findings += given_away_finding(given, known_rows(rows, keys["train"]), what, part, how)
    return counts, findings


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


def held_out_split(
    items: Sequence[Item], share: float, seed: int, name: str, groups: Sequence[int] | None = None
) -> tuple[list[Item], list[Item]]:
    """A random `share` of the items and the rest, both in their old order; the same for the same seed.

    Items of one of the `groups`, a number for each item, stay together, and those that are LOOSE are in the first part,
    as is a group far larger than the second part is to be. Raises InputError, naming the items by `name`, where one of
    the two would be empty.
    """
    size = round(share * len(items))
    if not 0 < size < len(items):
        raise InputError(f"{name}: {len(items)} rows are too few for a split at {share}")
    generator = random.Random(seed)
    chosen = set(generator.sample(range(len(items)), size)) if groups is None else _chosen(groups, size, generator)
    if not 0 < len(chosen) < len(items):
        raise InputError(
            f"{name}: {len(items)} rows are too few texts for a split at {share}; split_by: row divides a text"
        )
    return (
        [item for number, item in enumerate(items) if number in chosen],
        [item for number, item in enumerate(items) if number not in chosen],
    )


def groups_of(texts: Sequence[Words]) -> list[int]:
    """A number for each text, the same for texts that lie in one another word for word; LOOSE for some.

    A text of LONG words or more is of one group with all texts that it lies in. A shorter one is with those that it
    lies in if they are of one group, and LOOSE otherwise, for "the film" would tie all groups together. So no text of a
    group lies in one of another group or in a LOOSE one, nor holds a text of LONG words that is not of its group.
    """
    numbers = {words: number for number, words in enumerate(dict.fromkeys(texts))}
    index = PhraseIndex.of(list(numbers))
    changes = np.zeros(len(index.owners) + 1, dtype=np.int64)
    for row, (first, last) in index.ranges.items():
        if index.lengths[row] >= LONG:
            changes[first] += 1
            changes[last - 1] -= 1
    tied = np.flatnonzero(np.cumsum(changes) > 0)  # places that hold the same long text as the place after
    pairs = index.owners[tied], index.owners[tied + 1]
    graph = coo_array((np.ones(len(tied), dtype=bool), pairs), shape=(len(numbers), len(numbers)))
    groups = connected_components(graph, directed=False)[1].astype(np.int64)
    for length in range(LONG - 1, 0, -1):  # the longest first, for shorter ones lie in them
        for row in np.flatnonzero(index.lengths == length).tolist():
            owners = index.owners[slice(*index.ranges[row])]
            holders = groups[owners[owners != row]]
            if len(holders):
                groups[row] = holders[0] if (holders == holders[0]).all() else LOOSE
    return groups[[numbers[words] for words in texts]].tolist()


def _chosen(groups: Sequence[int], size: int, generator: random.Random) -> set[int]:
    """The numbers of `size` items, or about as many: whole groups in a random order, each where it still fits."""
    members: dict[int, list[int]] = {}
    for number, group in enumerate(groups):
        members.setdefault(group, []).append(number)
    largest = 2 * (len(groups) - size)  # a larger one would make the held-out part more than twice what it is to be
    chosen = set(members.pop(LOOSE, []))
    if len(chosen) > size:
        return set()  # nothing is left to draw
    drawn = generator.sample(list(members.values()), len(members))
    for group in sorted(drawn, key=lambda group: len(group) <= largest):
        if len(chosen) + len(group) <= size or len(group) > largest:
            chosen.update(group)
    return chosen


def split_sentences(train: Path, dev: Path, share: float, seed: int, by: SplitBy) -> None:
    """Move all but a share of the rows of `train` to `dev`; by text, the phrases of a sentence stay together.

    Raises InputError where a row is wrong or there are too few.
    """
    sentences = read_sentences(train)  # while the lines have the numbers that the user knows
    header, *rows = [line for _, line in numbered_lines(train) if line.strip()]
    groups = groups_of([words_of(sentence.text) for sentence in sentences]) if by == "text" else None
    for path, kept in zip((train, dev), held_out_split(rows, share, seed, str(train), groups), strict=True):
        write_text(path, "".join(f"{line}\n" for line in (header, *kept)))


def split_questions(train: Path, dev: Path, share: float, seed: int, by: SplitBy) -> None:
    """Move all but a share of the questions of `train` to `dev`; by text, those on a passage stay together.

    Raises InputError where a question is wrong or there are too few.
    """
    questions = read_questions(train)
    passages = keys_of((question.context, None) for question in questions)
    numbers = {passage: number for number, passage in enumerate(dict.fromkeys(passages))}
    groups = [numbers[passage] for passage in passages] if by == "text" else None
    ids, document = [question.id for question in questions], read_json(train)
    for path, kept in zip((train, dev), held_out_split(ids, share, seed, str(train), groups), strict=True):
        write_json(path, {**document, "data": _with_questions(document["data"], set(kept))})


def _with_questions(articles: list[dict[str, Any]], kept: set[str]) -> list[dict[str, Any]]:
    found = []
    for article in articles:
        chosen = [
            {**paragraph, "qas": [qa for qa in paragraph["qas"] if qa["id"] in kept]}
            for paragraph in article["paragraphs"]
        ]
        paragraphs = [paragraph for paragraph in chosen if paragraph["qas"]]
        if paragraphs:
            found.append({**article, "paragraphs": paragraphs})
    return found
