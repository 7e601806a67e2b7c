"""Rows held out of a training set where a data set has no validation set of its own."""

import random
from collections.abc import Sequence
from typing import TypeVar

from stages.harness.errors import InputError

Item = TypeVar("Item")


def held_out_split(items: Sequence[Item], share: float, seed: int, name: str) -> tuple[list[Item], list[Item]]:
    """A random `share` of the items and the rest, both in their old order; the same for the same seed.

    Raises InputError, naming them by `name`, where one of the two would be empty.
    """
    size = round(share * len(items))
    if not 0 < size < len(items):
        raise InputError(f"{name}: {len(items)} rows are too few for a split at {share}")
    chosen = set(random.Random(seed).sample(range(len(items)), size))
    return (
        [item for number, item in enumerate(items) if number in chosen],
        [item for number, item in enumerate(items) if number not in chosen],
    )
