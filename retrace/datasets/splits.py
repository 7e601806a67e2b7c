"""Splits of a data set: which rows and texts they share, and how to hold out rows so that they share little.

Texts are compared word by word, ignoring case, accents and white space, as a lower-casing tokenizer does.
"""

import random
import re
import unicodedata
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from retrace.core.errors import InputError
from retrace.core.files import read_json, write_json
from retrace.core.paths import questions_path
from retrace.datasets.examples import Example
from retrace.datasets.settings import SplitSettings
from retrace.datasets.squad import read_questions
from retrace.datasets.words import WORD_PATTERN

INSIDE = "are part of a training text, or contain one with at least half of their words"
# The same for pairs of texts:
INSIDE_FIRST = "have a first text that is part of one of train, or contains one with at least half of its words"
LONG = 4  # words; shorter texts, such as "the film", occur in many others by chance
LOOSE = -1  # the group of a short text that occurs in texts of several groups
Words = tuple[str, ...]
Key = tuple[Words, Words | None]
Item = TypeVar("Item")

_WORD = re.compile(rf"{WORD_PATTERN}|[^\w\s]")


class _HasText(Protocol):
    @property
    def text(self) -> str: ...


Row = TypeVar("Row", bound=_HasText)


def words_of(text: str) -> Words:
    """The text's words and punctuation marks."""
    plain = text.lower()
    if not plain.isascii():
        plain = "".join(char for char in unicodedata.normalize("NFD", plain) if not unicodedata.combining(char))
        plain = unicodedata.normalize("NFC", plain)  # puts Hangul syllables together again
    return tuple(_WORD.findall(plain))


def keys_of(rows: Iterable[tuple[str, str | None]]) -> list[Key]:
    """The words of rows of one or two texts; a text that occurs several times is cut into words once."""
    found = list(rows)
    texts = dict.fromkeys(text for row in found for text in row if text is not None)
    words = {text: words_of(text) for text in texts}
    return [(words[first], None if second is None else words[second]) for first, second in found]


def maximal_texts(texts: Iterable[str]) -> list[str]:
    """The distinct texts that are not part of another, word for word, in their order; no text without words."""
    found = {words_of(text): text for text in texts}
    _, ranges, _ = phrase_index(list(found))
    return [text for row, text in enumerate(found.values()) if row in ranges and np.diff(ranges[row]) == 1]


def known_rows(rows: Sequence[Hashable], training: Sequence[Hashable]) -> np.ndarray:
    """Which rows also occur in the training data: (N,), bool."""
    known = set(training)
    return np.array([row in known for row in rows], dtype=bool)


def given_away(texts: Sequence[Words], training: Sequence[Words]) -> np.ndarray:
    """Which texts are part of a training text, or contain one that makes up half of their words or more: (N,), bool.

    A contained training text counts only if it has LONG words or more. A text without words never counts.
    """
    owners, ranges, lengths = phrase_index([*training, *texts])
    places_before = np.append(0, np.cumsum(owners < len(training)))  # how many of them are in training texts
    held = np.zeros(len(owners), dtype=np.int64)  # by place: length of the longest training text starting there
    inside = np.zeros(len(lengths), dtype=bool)
    for row in sorted(ranges, key=lambda row: lengths[row]):
        first, last = ranges[row]
        inside[row] = places_before[last] > places_before[first]
        if row < len(training) and lengths[row] >= LONG:
            held[first:last] = lengths[row]
    half = (held > 0) & (2 * held >= lengths[owners])
    inside[owners[half]] = True
    return inside[len(training) :]


def shared_finding(shared: np.ndarray, what: str, part: str, training: str = "train") -> list[str]:
    """A line with how many rows of a split, (N,), bool, are also in another one; no line if none are."""
    if not shared.any():
        return []
    return [f"{int(shared.sum()):,} of {len(shared):,} {what} of {part} are in {training} too"]


def given_away_finding(given: np.ndarray, shared: np.ndarray, part: str, how: str) -> list[str]:
    """A line with how many examples, (N,), bool, the training data gives away; no line if it contains all of these."""
    if not (given & ~shared).any():
        return []
    return [f"{int(given.sum()):,} of {len(given):,} examples of {part} {how}"]


def count_shared(keys: Mapping[str, Sequence[Hashable]], what: str) -> tuple[dict[str, int], list[str]]:
    """How many rows of each split are also in an earlier one, by `dev in train`; and findings, naming rows `what`."""
    counts, findings = {}, []
    for earlier, later in combinations(keys, 2):
        shared = known_rows(keys[later], keys[earlier])
        counts[f"{later} in {earlier}"] = int(shared.sum())
        findings += shared_finding(shared, what, later, earlier)
    return counts, findings


def count_overlaps(parts: Mapping[str, Sequence[Example]]) -> tuple[dict[str, int], dict[str, int], list[str]]:
    """The counts of `count_shared`; how many first texts of each other split `train` gives away; and findings."""
    keys = {part: keys_of((example.text, example.pair) for example in examples) for part, examples in parts.items()}
    shared, findings = count_shared(keys, "examples")
    train, counts = keys.pop("train"), {}
    for part, rows in keys.items():
        given = given_away([text for text, _ in rows], [text for text, _ in train])
        counts[part] = int(given.sum())
        how = INSIDE if rows[0][1] is None else INSIDE_FIRST
        findings += given_away_finding(given, known_rows(rows, train), part, how)
    return shared, counts, findings


def phrase_index(texts: Sequence[Words]) -> tuple[np.ndarray, dict[int, tuple[int, int]], np.ndarray]:
    """A suffix array of texts: the places of all words, sorted by the words that follow, so that equal phrases adjoin.

    Returns the number of the text that each place is in, (P,); for each text that has words, the first and the end of
    the places where it occurs; and the texts' lengths in words, (N,).
    """
    numbers: dict[str, int] = {}
    encoded = [array("i", (numbers.setdefault(word, len(numbers) + 1) for word in text)) for text in texts]
    words = array("i")
    for text in encoded:
        words.extend(text)
        words.append(0)  # ends the text
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    order = _sorted_places(np.array(words, dtype=np.int64), int(lengths.max(initial=1)))
    places = array("i", order.astype(np.int32).tobytes())
    ranges = {row: _range(places, words, text) for row, text in enumerate(encoded) if text}
    return np.repeat(np.arange(len(texts)), lengths + 1)[order], ranges, lengths


def _range(places: "array[int]", words: "array[int]", text: "array[int]") -> tuple[int, int]:
    size = len(text)
    first = bisect_left(places, text, key=lambda place: words[place : place + size])
    return first, bisect_right(places, text, first, key=lambda place: words[place : place + size])


def _sorted_places(words: np.ndarray, longest: int) -> np.ndarray:
    """Places sorted by the `longest` words or more that follow, by prefix doubling (Manber and Myers 1993)."""
    rank, known = words, 1  # the rank of each place by the `known` words that follow
    while known < longest:
        after = np.zeros_like(rank)
        after[:-known] = rank[known:] + 1
        rank = np.unique(rank * (rank.max() + 2) + after, return_inverse=True)[1]
        known *= 2
    return np.argsort(rank, kind="stable")


def held_out_split(
    items: Sequence[Item], share: float, seed: int, name: str, groups: Sequence[Hashable] | None = None
) -> tuple[list[Item], list[Item]]:
    """A random `share` of the items, and the rest; both keep the order of the items.

    With `groups`, the group of each item, groups stay together; LOOSE items go to the first part, as does a group far
    larger than the second part should be. Raises InputError, calling the items `name`, if a part would be empty.
    """
    size = round(share * len(items))
    if not 0 < size < len(items):
        raise InputError(f"{name}: too few rows for a split at {share}: {len(items)}")
    generator = random.Random(seed)
    chosen = set(generator.sample(range(len(items)), size)) if groups is None else _chosen(groups, size, generator)
    if not 0 < len(chosen) < len(items):
        raise InputError(
            f"{name}: too few texts for a split at {share}: {len(items)} rows; split_by: row divides texts"
        )
    return (
        [item for number, item in enumerate(items) if number in chosen],
        [item for number, item in enumerate(items) if number not in chosen],
    )


def groups_of(texts: Sequence[Words]) -> list[int]:
    """A group number for each text, such that texts that contain one another, word for word, are in one group.

    A text of LONG words or more is in one group with all texts that contain it. A shorter one joins the texts that
    contain it if these are in one group, and is LOOSE otherwise, since "the film" would tie all groups together. So no
    text of a group is part of a text of another group or of a LOOSE one, nor contains a text of LONG words that is not
    in its group.
    """
    from scipy.sparse import coo_array  # here, as `retrace check` need not wait for them
    from scipy.sparse.csgraph import connected_components

    numbers = {words: number for number, words in enumerate(dict.fromkeys(texts))}
    owners, ranges, lengths = phrase_index(list(numbers))
    changes = np.zeros(len(owners) + 1, dtype=np.int64)
    for row, (first, last) in ranges.items():
        if lengths[row] >= LONG:
            changes[first] += 1
            changes[last - 1] -= 1
    tied = np.flatnonzero(np.cumsum(changes) > 0)  # places where the same long text occurs as at the next one
    pairs = owners[tied], owners[tied + 1]
    graph = coo_array((np.ones(len(tied), dtype=bool), pairs), shape=(len(numbers), len(numbers)))
    groups = connected_components(graph, directed=False)[1].astype(np.int64)
    for length in range(LONG - 1, 0, -1):  # the longest first, as they may contain shorter ones
        for row in np.flatnonzero(lengths == length).tolist():
            there = owners[slice(*ranges[row])]
            holders = groups[there[there != row]]
            if len(holders):
                groups[row] = holders[0] if (holders == holders[0]).all() else LOOSE
    return groups[[numbers[words] for words in texts]].tolist()


def _chosen(groups: Sequence[Hashable], size: int, generator: random.Random) -> set[int]:
    """The numbers of about `size` items: whole groups in random order, each taken if it still fits."""
    members: dict[Hashable, list[int]] = {}
    for number, group in enumerate(groups):
        members.setdefault(group, []).append(number)
    largest = 2 * (len(groups) - size)  # a larger group would make the held-out part more than twice too large
    chosen = set(members.pop(LOOSE, []))
    if len(chosen) > size:
        return set()  # nothing is left to draw
    drawn = generator.sample(list(members.values()), len(members))
    for group in sorted(drawn, key=lambda group: len(group) <= largest):
        if len(chosen) + len(group) <= size or len(group) > largest:
            chosen.update(group)
    return chosen


def split_rows(rows: Mapping[str, Sequence[Row]], settings: SplitSettings, name: str) -> dict[str, Sequence[Row]]:
    """The rows of train, dev and perhaps test; where there is a `split`, train keeps that share and dev gets the rest.

    Split by text, the phrases of a sentence stay together. Raises InputError, calling the rows `name`, if there are
    too few.
    """
    if settings.split is None:
        return dict(rows)
    train = rows["train"]
    groups = groups_of([words_of(row.text) for row in train]) if settings.split_by == "text" else None
    train, dev = held_out_split(train, settings.split, settings.split_seed, name, groups)
    return {"train": train, "dev": dev, **{part: found for part, found in rows.items() if part == "test"}}


def split_questions(folder: Path, settings: SplitSettings) -> None:
    """Where there is a `split`, move all but that share of the questions of `train` in a folder to `dev`.

    Split by text, the questions on a passage stay together, as do those on passages that contain one another. Raises
    InputError if a question is malformed or there are too few.
    """
    if settings.split is None:
        return
    train, dev = (questions_path(folder, part) for part in ("train", "dev"))
    questions, document = read_questions(train), read_json(train)
    ids, groups = [question.id for question in questions], None
    if settings.split_by == "text":
        groups = groups_of([words for words, _ in keys_of((question.context, None) for question in questions)])
    parts = held_out_split(ids, settings.split, settings.split_seed, str(train), groups)
    for path, kept in zip((train, dev), parts, strict=True):
        write_json(path, {**document, "data": _with_questions(document["data"], set(kept))})


def _with_questions(articles: list[dict[str, Any]], kept: set[str]) -> list[dict[str, Any]]:
    found = []
    for article in articles:
        paragraphs = [
            {**paragraph, "qas": [qa for qa in paragraph["qas"] if qa["id"] in kept]}
            for paragraph in article["paragraphs"]
        ]
        found.append({**article, "paragraphs": [paragraph for paragraph in paragraphs if paragraph["qas"]]})
    return [article for article in found if article["paragraphs"]]
