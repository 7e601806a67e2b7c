"""Sequences of different lengths as one tensor."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor


def padded(sequences: Sequence[Sequence[int] | np.ndarray], fill: int) -> Tensor:
    """Sequences filled up on the right to the longest: (B, T), int64."""
    rows = np.full((len(sequences), max(map(len, sequences))), fill, dtype=np.int64)
    for row, sequence in zip(rows, sequences, strict=True):
        row[: len(sequence)] = sequence
    return torch.from_numpy(rows)


def mask_of(sequences: Sequence[Sequence[int] | np.ndarray]) -> Tensor:
    """1 where a token is, 0 where padding is: (B, T), int64."""
    return padded([np.ones(len(sequence)) for sequence in sequences], 0)
