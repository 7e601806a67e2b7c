"""Rows held out of a training set for validation."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from retrace.core.errors import InputError
from retrace.core.files import numbered_lines, read_json, write_json, write_text
from retrace.datasets.examples import read_sentences
from retrace.datasets.overlap import LONG, PhraseIndex, Words, keys_of, words_of
from retrace.datasets.settings import SplitBy
from retrace.datasets.squad import read_questions

LOOSE = -1  # the group of a short text that lies in texts of several groups
Item = TypeVar("Item")


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
