"""Causal language modelling (Radford et al. 2018): each token is predicted from those before it."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from retrace.objectives.language_modelling import IGNORED, HeldOut, LabelledBatch
from retrace.tokens.vocabulary import Vocabulary


def next_tokens(blocks: Tensor, vocabulary: Vocabulary) -> LabelledBatch:
    """Label each position with the token after it, special tokens never: blocks (B, T) → ids and labels (B, T).

    As in masked modelling a special token is no target, so that perplexities speak of the same tokens.
    """
    after = torch.full_like(blocks, IGNORED)
    after[:, :-1] = blocks[:, 1:]
    special = torch.isin(after, torch.tensor(vocabulary.special))
    return LabelledBatch(blocks, after.masked_fill(special, IGNORED))


def sliding_batches(
    stream: np.ndarray, block: int, stride: int, vocabulary: Vocabulary, batch_size: int = 32
) -> Iterator[HeldOut]:
    """Windows of `block` tokens, each `stride` after the one before, in which only what is new is asked.

    So every token but the first few has at least `block - stride` tokens before it, and each is asked once;
    where windows do not overlap, their first tokens are not asked.
    """
    last = max(0, len(stream) - block)
    starts = [*range(0, last, stride), last]
    for first in range(0, len(starts), batch_size):
        rows = starts[first : first + batch_size]
        blocks = torch.from_numpy(np.stack([stream[start : start + block] for start in rows]).astype(np.int64))
        labelled = next_tokens(blocks, vocabulary)
        for row, start in enumerate(rows):
            if start:
                known = starts[first + row - 1] + block - start  # tokens of the window that were asked before
                labelled.labels[row, : max(0, known - 1)] = IGNORED
        places = torch.tensor(rows)[:, None] + torch.arange(1, blocks.shape[1] + 1)
        yield HeldOut(labelled.ids, labelled.labels, places)
