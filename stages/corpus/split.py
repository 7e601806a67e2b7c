"""Rows held out of a training set where a data set has no validation set of its own."""

import random
from collections.abc import Sequence
from typing import Literal, TypeVar

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from stages.corpus.overlap import LONG, PhraseIndex, Words
from stages.harness.errors import InputError

# What is drawn: texts, each with all rows that lie in it and all questions on it; or row by row, whatever they share.
SplitBy = Literal["text", "row"]
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
