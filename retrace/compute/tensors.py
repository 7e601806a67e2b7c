"""Seeded generators, and padding of sequences."""

import zlib
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

IGNORED = -100  # the label of positions without a target, which the losses of torch and transformers leave out


def seeded(seed: int, purpose: str) -> torch.Generator:
    """A generator for one purpose, independent of the draws for other purposes."""
    return torch.Generator().manual_seed(zlib.crc32(f"{seed} {purpose}".encode()))


def rounded_up(count: int, most: int, parts: int) -> int:
    """A count up to `most`, rounded up to one of about `parts` values, so that a model is compiled for few shapes.

    All values but `most` are multiples of 8, for which products are fastest on GPUs.
    """
    step = -(-most // (8 * parts)) * 8
    return min(most, -(-count // step) * step)


def padded(sequences: Sequence[Sequence[int] | np.ndarray], fill: int, length: int | None = None) -> Tensor:
    """Sequences padded on the right to the longest, or to `length`: (B, T), int64."""
    rows = np.full((len(sequences), length or max(map(len, sequences))), fill, dtype=np.int64)
    for row, sequence in zip(rows, sequences, strict=True):
        row[: len(sequence)] = sequence
    return torch.from_numpy(rows)


def ragged(sequences: Sequence[Sequence[int] | np.ndarray]) -> bool:
    """Whether the lengths differ, so that some sequences need padding."""
    return len(set(map(len, sequences))) > 1


def mask_of(sequences: Sequence[Sequence[int] | np.ndarray], length: int | None = None) -> Tensor:
    """The attention mask, 1 for tokens and 0 for padding: (B, T), int64."""
    return padded([np.ones(len(sequence)) for sequence in sequences], 0, length)
