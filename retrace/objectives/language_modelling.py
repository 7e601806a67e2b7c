"""Masked (Devlin et al. 2018) and causal (Radford et al. 2018) language modelling on blocks of running text.

They differ in which positions are predicted, and in the targets there. Masking chooses a fixed number of tokens per
block, which keeps shapes constant. By default all of them become the mask token: Wettig et al. 2022 (Should You Mask
15% in Masked Language Modeling?) found no benefit in BERT's 80-10-10, and higher mask rates better. Evaluation always
masks single tokens, with the mask token.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from retrace.compute.device import Device
from retrace.compute.tensors import IGNORED, rounded_up, seeded
from retrace.core.errors import InputError
from retrace.core.settings import MaskReplacement
from retrace.tokens.blocks import cut_blocks
from retrace.tokens.tokenizer import Vocabulary

ROUNDING = 1e-6  # 0.29 · 100 is 28.999… in binary
COUNTS = 16  # for how many numbers of targets per batch a model is compiled


class Inputs(NamedTuple):
    """The inputs of a `LanguageModel` for a batch, on its device."""

    ids: Tensor  # (B, T)
    at: Tensor  # ascending positions of the targets in the flattened ids: (B, M) if each row has M, else (N,)
    targets: Tensor  # (N,)


@dataclass(frozen=True)
class LabelledBatch:
    """Input ids and target ids on the host, both (B, T)."""

    ids: Tensor
    labels: Tensor  # IGNORED where there is no target

    def __len__(self) -> int:
        """The number of blocks."""
        return len(self.ids)

    def __getitem__(self, rows: slice) -> Self:
        """Some of the blocks."""
        return replace(self, **{name: tensor[rows] for name, tensor in vars(self).items()})

    @property
    def has_target(self) -> Tensor:
        """Where there is a target: (B, T), bool."""
        return self.labels != IGNORED

    @property
    def count(self) -> int:
        """The number of targets."""
        return int(self.has_target.sum())

    def to(self, device: Device, rounded: bool = False) -> Inputs:
        """The model's inputs; positions are found on the host, which would have to wait for a GPU to find them.

        If `rounded`, as for compiled models, the number of targets is rounded up; the added entries are at position 0
        and have no target.
        """
        at, counts = self.has_target.flatten().nonzero()[:, 0], self.has_target.sum(1)
        targets = self.labels.flatten()[at]
        if rounded:
            more = rounded_up(len(at), self.ids.numel(), COUNTS) - len(at)
            at, targets = functional.pad(at, (0, more)), functional.pad(targets, (0, more), value=IGNORED)
        elif len(at) and len(counts.unique()) == 1:
            at = at.view(len(self), -1)
        return Inputs(device.send(self.ids), device.send(at), device.send(targets))


@dataclass(frozen=True)
class HeldOut(LabelledBatch):
    """Blocks of a held-out stream."""

    places: Tensor  # (B, T), the labels' positions in the stream


ForwardPass = Callable[[Tensor, Tensor], Tensor]  # of a `LanguageModel`: ids, positions → logits


@dataclass(frozen=True)
class Masking:
    """Which tokens are masked, and how."""

    rate: float  # share of a block's tokens
    mask_replacement: MaskReplacement = "mask"
    continues: Tensor | None = None  # (V,), whether a token continues a word; if given, whole words are masked
    closes: Tensor | None = None  # (V,), whether a word begins after a token, whatever follows


class BlockModelling:
    """The pretraining objective on blocks, cut at a new random offset in each epoch: masked anew, or else causal.

    After the first `mixed` epochs, blocks are drawn from `ending`, in as many passes as an epoch's steps need.
    """

    def __init__(
        self, stream: np.ndarray, vocabulary: Vocabulary, block: int, batch: int, masking: Masking | None, seed: int,
        ending: np.ndarray | None = None, mixed: int = 0,
    ) -> None:  # fmt: skip
        self._stream, self._vocabulary, self._block, self._batch = stream, vocabulary, block, batch
        self._masking, self._seed, self._mixed = masking, seed, mixed
        self._ending = stream if ending is None else ending
        cut_blocks(self._ending, block)  # a text that is too short is an error now, not when its first epoch begins
        self.steps = max(1, (len(cut_blocks(stream, block)) - 1) // batch)

    def batches(self, epoch: int) -> Iterator[LabelledBatch]:
        """The epoch's batches, on the host."""
        generator = seeded(self._seed, f"pretraining epoch {epoch}")
        stream = self._stream if epoch <= self._mixed else self._ending
        for blocks in islice(self._drawn(stream, generator), self.steps):
            chosen = torch.from_numpy(blocks.astype(np.int64))
            if self._masking is None:
                yield next_tokens(chosen, self._vocabulary)
            else:
                yield mask_blocks(chosen, self._masking, self._vocabulary, generator)

    def _drawn(self, stream: np.ndarray, generator: torch.Generator) -> Iterator[np.ndarray]:
        """Batches of blocks, in one pass after another over the stream."""
        while True:
            offset = int(torch.randint(self._block, (1,), generator=generator)) % max(1, len(stream) - self._block)
            blocks = cut_blocks(stream, self._block, offset)
            order = torch.randperm(len(blocks), generator=generator).numpy()
            for first in range(0, max(1, len(blocks) - self._batch + 1), self._batch):
                yield blocks[np.sort(order[first : first + self._batch])]

    def sizes(self, batch: LabelledBatch) -> tuple[int, int]:
        """The number of targets, and of all tokens, as blocks have no padding."""
        return batch.count, batch.ids.numel()

    def part(self, batch: LabelledBatch, rows: slice, device: Device) -> Inputs:
        """Some of the blocks."""
        # With plain masking all blocks have the same number of targets.
        varies = self._masking is None or self._masking.continues is not None
        return batch[rows].to(device, rounded=varies and device.compiler is not None)

    def loss(self, model: nn.Module, part: Inputs) -> Tensor:
        """The loss summed over the targets."""
        return model(*part)


def token_loss(model: ForwardPass, part: Inputs) -> Tensor:
    """The negative log-likelihood summed over the targets, in nats."""
    return functional.cross_entropy(model(part.ids, part.at).float(), part.targets, reduction="sum")


@torch.no_grad()
def mean_loss(model: ForwardPass, batches: Iterable[LabelledBatch], device: Device) -> float:
    """The mean loss per target in nats; processes share the batches.

    Raises InputError if there are no targets, because the vocabulary has none of the text's words.
    """
    total, seen = torch.zeros((), dtype=torch.float64, device=device.torch_device), 0
    for batch, counts in device.share_batches(batches):
        with device.autocast():
            loss = token_loss(model, batch.to(device))
        if counts:
            total, seen = total + loss, seen + batch.count
    summed, labels = device.all_reduce_sum([total.item(), seen])
    if not labels:
        raise InputError("the validation text has no token to predict: the vocabulary has none of its words")
    return summed / labels


def next_tokens(blocks: Tensor, vocabulary: Vocabulary) -> LabelledBatch:
    """Label each position with the next token: blocks (B, T) → ids and labels (B, T).

    As in masked language modelling, special tokens are never targets, so that perplexities are over the same tokens.
    """
    after = functional.pad(blocks[:, 1:], (0, 1), value=IGNORED)
    special = torch.isin(after, torch.tensor(vocabulary.special))
    return LabelledBatch(blocks, after.masked_fill(special, IGNORED))


def sliding_batches(
    stream: np.ndarray, block: int, stride: int, vocabulary: Vocabulary, batch_size: int = 32
) -> Iterator[HeldOut]:
    """Windows of `block` tokens that start every `stride` tokens; the targets are the tokens that are new in a window.

    So every token is predicted once and, except for the first few, from at least `block - stride` previous tokens. If
    windows do not overlap, their first tokens are not predicted.
    """
    last = max(0, len(stream) - block)
    starts = [*range(0, last, stride), last]
    for first in range(0, len(starts), batch_size):
        rows = starts[first : first + batch_size]
        blocks = torch.from_numpy(np.stack([stream[start : start + block] for start in rows]).astype(np.int64))
        labelled = next_tokens(blocks, vocabulary)
        for row, start in enumerate(rows):
            if start:
                known = starts[first + row - 1] + block - start  # tokens also in the window before
                labelled.labels[row, : max(0, known - 1)] = IGNORED
        yield HeldOut(labelled.ids, labelled.labels, torch.tensor(rows)[:, None] + torch.arange(1, blocks.shape[1] + 1))


def mask_id(vocabulary: Vocabulary) -> int:
    """The id of the mask token.

    Raises InputError if the tokenizer has none, as those of causal models do not.
    """
    if vocabulary.mask is None:
        raise InputError("the tokenizer has no mask token, which masked language modelling needs")
    return vocabulary.mask


def masked_of(tokens: int, rate: float) -> int:
    """How many of a block's tokens are masked: at least one."""
    return max(1, int(tokens * rate + ROUNDING))


def mask_blocks(blocks: Tensor, masking: Masking, vocabulary: Vocabulary, generator: torch.Generator) -> LabelledBatch:
    """Mask a share of each block's tokens, except special ones: blocks (B, T) → ids and labels (B, T)."""
    special = torch.isin(blocks, torch.tensor(vocabulary.special))
    counts = torch.tensor([masked_of(tokens, masking.rate) for tokens in (blocks != vocabulary.pad).sum(1).tolist()])
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
    """The `counts` tokens of each block with the highest random numbers, (B, T); the tokens of a word share one."""
    draw = torch.rand(blocks.shape, generator=generator)
    words = None if masking.continues is None else _words(blocks, special, masking.continues, masking.closes)
    if words is not None:
        draw = draw.gather(1, words)
    highest = draw.masked_fill(special, -1.0).topk(int(counts.max()), dim=1).indices
    wanted = torch.arange(highest.shape[1]) < counts[:, None]
    chosen = torch.zeros_like(special).scatter(1, highest, wanted) & ~special
    return chosen if words is None else _whole_words(chosen, words)


def _words(blocks: Tensor, special: Tensor, continues: Tensor, closes: Tensor | None) -> Tensor:
    """The number of each token's word within its block, (B, T), from 0; special tokens are words of their own."""
    begins = ~continues[blocks] | special
    begins[:, 0] = True  # a block may begin within a word
    begins[:, 1:] |= special[:, :-1]
    if closes is not None:
        begins[:, 1:] |= closes[blocks[:, :-1]]
    return begins.long().cumsum(1) - 1


def _whole_words(chosen: Tensor, words: Tensor) -> Tensor:
    """The chosen tokens, (B, T), without words that were chosen only in part, unless none would be left."""
    spared = torch.zeros(chosen.shape).scatter_reduce(1, words, (~chosen).float(), "amax")  # by word
    whole = chosen & (spared.gather(1, words) == 0)
    return torch.where(whole.any(1, keepdim=True), whole, chosen)


def masked_batches(
    stream: np.ndarray, block: int, rate: float, vocabulary: Vocabulary, batch_size: int = 32
) -> Iterator[HeldOut]:
    """The blocks of a held-out stream with fixed masks, the same each time."""
    block = min(block, len(stream))  # a text may be shorter than a block
    blocks = cut_blocks(stream, block)
    generator = seeded(0, "validation masks")
    for start in range(0, len(blocks), batch_size):
        batch = torch.from_numpy(blocks[start : start + batch_size].astype(np.int64))
        masked = mask_blocks(batch, Masking(rate), vocabulary, generator)
        yield HeldOut(masked.ids, masked.labels, start * block + torch.arange(batch.numel()).view_as(batch))
