"""Masked language modelling on blocks (Devlin et al. 2018), with a fixed number of masked tokens per block.

A fixed number keeps shapes constant. By default every chosen token is replaced by the mask: Wettig et al. 2022 (Should
You Mask 15% in Masked Language Modeling?) found BERT's 80-10-10 useless and higher rates better. Evaluation always
masks single tokens, and replaces all of them by the mask.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from retrace.compute.tensors import seeded
from retrace.core.errors import InputError
from retrace.objectives.language_modelling import IGNORED, HeldOut, LabelledBatch
from retrace.objectives.settings import MaskReplacement
from retrace.tokens.blocks import cut_blocks
from retrace.tokens.tokenizer import Vocabulary


@dataclass(frozen=True)
class Masking:
    """Which tokens are masked, and how."""

    rate: float  # share of a block's tokens
    mask_replacement: MaskReplacement = "mask"
    continues: Tensor | None = None  # (V,), whether a token continues a word; if given, whole words are masked
    closes: Tensor | None = None  # (V,), whether a word begins after a token whatever follows


def mask_id(vocabulary: Vocabulary) -> int:
    """The id of the mask.

    Raises InputError where the tokenizer has none, as with causal models.
    """
    if vocabulary.mask is None:
        raise InputError("the tokenizer has no mask token, which masked language modelling needs")
    return vocabulary.mask


def mask_blocks(blocks: Tensor, masking: Masking, vocabulary: Vocabulary, generator: torch.Generator) -> LabelledBatch:
    """Mask a share of each block's tokens, but no special ones: blocks (B, T) → ids and labels (B, T)."""
    special = torch.isin(blocks, torch.tensor(vocabulary.special))
    counts = ((blocks != vocabulary.pad).sum(1).double() * masking.rate).long().clamp(min=1)  # (B,)
    chosen = _chosen(blocks, special, counts, masking, generator)
    labels = blocks.where(chosen, IGNORED)
    mask = mask_id(vocabulary)
    if masking.mask_replacement == "mask":
        return LabelledBatch(blocks.masked_fill(chosen, mask), labels)
    fate = torch.rand(blocks.shape, generator=generator)
    others = torch.randint(vocabulary.size - len(vocabulary.special), blocks.shape, generator=generator)
    for token in sorted(vocabulary.special):
        others += others >= token  # skip it
    ids = blocks.masked_fill(chosen & (fate < 0.8), mask)
    return LabelledBatch(others.where(chosen & (fate >= 0.9), ids), labels)


def _chosen(blocks: Tensor, special: Tensor, counts: Tensor, masking: Masking, generator: torch.Generator) -> Tensor:
    """The `counts` tokens of each block with the highest random numbers, (B, T); tokens of a word share a number."""
    draw = torch.rand(blocks.shape, generator=generator)
    word = None
    if masking.continues is not None:
        begins = ~masking.continues[blocks]
        begins[:, 0] = True  # a block may begin within a word
        if masking.closes is not None:
            begins[:, 1:] |= masking.closes[blocks[:, :-1]]
        word = begins.long().cumsum(1) - 1
        draw = draw.gather(1, word)
    draw = draw.masked_fill(special, -1.0)
    most = int(counts.max())
    within = torch.arange(most) < counts[:, None]
    chosen = torch.zeros_like(special).scatter(1, draw.topk(most, dim=1).indices, within) & ~special
    if word is not None:  # leave out words that do not fit as a whole
        spared = torch.zeros_like(draw).scatter_reduce(1, word, (~chosen).float(), "amax")
        whole = chosen & (spared.gather(1, word) == 0)
        chosen = torch.where(whole.any(1, keepdim=True), whole, chosen)  # unless nothing is left
    return chosen


def masked_batches(
    stream: np.ndarray, block: int, rate: float, vocabulary: Vocabulary, batch_size: int = 32
) -> Iterator[HeldOut]:
    """The blocks of a held-out stream with fixed masks, the same every time."""
    blocks = cut_blocks(stream, block)
    generator = seeded(0, "validation masks")
    for start in range(0, len(blocks), batch_size):
        batch = torch.from_numpy(blocks[start : start + batch_size].astype(np.int64))
        masked = mask_blocks(batch, Masking(rate), vocabulary, generator)
        places = torch.arange(start * block, start * block + batch.numel()).view_as(batch)
        yield HeldOut(masked.ids, masked.labels, places)
