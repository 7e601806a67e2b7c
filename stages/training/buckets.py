"""Batches of examples of similar length, so that little of a batch is padding."""

from collections.abc import Sequence

import torch

POOL = 100  # batches that are sorted by length together: some 2% of padding on SST-2; more is less random


def bucketed(lengths: Sequence[int], batch_size: int, generator: torch.Generator) -> list[list[int]]:
    """Indices of all examples, each once, in batches in random order; the last of a pool may be smaller."""
    order = torch.randperm(len(lengths), generator=generator).tolist()
    batches = []
    for start in range(0, len(order), batch_size * POOL):
        pool = sorted(order[start : start + batch_size * POOL], key=lambda index: lengths[index])
        batches += [pool[first : first + batch_size] for first in range(0, len(pool), batch_size)]
    return [batches[index] for index in torch.randperm(len(batches), generator=generator).tolist()]
