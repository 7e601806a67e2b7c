"""Language modelling on blocks of running text: what masked and causal modelling share, and the causal one.

They differ in which positions of a block are predicted, and which token is right there.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from retrace.compute.device import Device
from retrace.compute.tensors import seeded
from retrace.core.errors import InputError
from retrace.tokens.blocks import cut_blocks
from retrace.tokens.tokenizer import Vocabulary

IGNORED = -100  # the label of a position that is not predicted


@dataclass(frozen=True)
class LabelledBatch:
    """Input ids and target ids, both (B, T)."""

    ids: Tensor
    labels: Tensor

    def to(self, device: torch.device) -> "LabelledBatch":
        """The same on another device."""
        return LabelledBatch(self.ids.to(device), self.labels.to(device))


@dataclass(frozen=True)
class HeldOut(LabelledBatch):
    """Blocks of a held-out stream, and the place in it of each position's target, (B, T)."""

    places: Tensor


Label = Callable[[Tensor, torch.Generator], LabelledBatch]
Answers = Callable[[Tensor, Tensor], Tensor]  # the forward pass of a `LanguageModel`


class BlockModelling:
    """The pretraining objective: blocks at a random offset each epoch, with new labels."""

    def __init__(
        self, stream: np.ndarray, block: int, batch_size: int, label: Label, seed: int, device: torch.device
    ) -> None:
        self._stream, self._block, self._batch, self._label = stream, block, batch_size, label
        self._seed, self._device = seed, device
        self.steps = max(1, (len(cut_blocks(stream, block)) - 1) // batch_size)

    def batches(self, epoch: int, rank_slice: slice) -> Iterator[LabelledBatch]:
        """The epoch's batches, this process's rows of each."""
        generator = seeded(self._seed, f"pretraining epoch {epoch}")
        offset = int(torch.randint(self._block, (1,), generator=generator)) % max(1, len(self._stream) - self._block)
        blocks = cut_blocks(self._stream, self._block, offset)
        order = torch.randperm(len(blocks), generator=generator).numpy()
        for step in range(self.steps):
            rows = np.sort(order[step * self._batch : (step + 1) * self._batch])
            labelled = self._label(torch.from_numpy(blocks[rows].astype(np.int64)), generator)
            yield LabelledBatch(labelled.ids[rank_slice], labelled.labels[rank_slice]).to(self._device)

    def loss(self, model: nn.Module, batch: LabelledBatch) -> tuple[Tensor, int]:
        """The loss summed over the targets."""
        return token_loss(model, batch)

    def tokens(self, batch: LabelledBatch) -> int:
        """All tokens; blocks have no padding."""
        return batch.ids.numel()


def token_loss(model: Answers, batch: LabelledBatch) -> tuple[Tensor, int]:
    """The negative log-likelihood summed over the targets, in nats, and the number of targets."""
    scores, labels = target_scores(model, batch)
    return functional.cross_entropy(scores, labels, reduction="sum"), len(labels)


def target_scores(model: Answers, batch: LabelledBatch) -> tuple[Tensor, Tensor]:
    """The scores at positions with a target, (N, V), and the targets, (N,)."""
    at = batch.labels != IGNORED
    return model(batch.ids, at).float(), batch.labels[at]


@torch.no_grad()
def mean_loss(model: Answers, batches: Iterable[LabelledBatch], device: Device) -> tuple[float, int]:
    """The mean loss of a target in nats, and the number of targets; processes share the batches.

    Raises InputError where there are no targets, as the vocabulary has no word of the text.
    """
    total, seen = 0.0, 0
    for batch, counts in device.share_batches(batches):
        with device.autocast():
            loss, count = token_loss(model, batch.to(device.torch_device))
        if counts:
            total, seen = total + loss.item(), seen + count
    summed, labels = device.all_reduce_sum([total, seen])
    if not labels:
        raise InputError("the validation text has no token to predict: the vocabulary has no word of it")
    return summed / labels, int(labels)


def next_tokens(blocks: Tensor, vocabulary: Vocabulary) -> LabelledBatch:
    """Label each position with the next token: blocks (B, T) → ids and labels (B, T).

    Special tokens are no targets, as in masked modelling, so that perplexities are over the same tokens.
    """
    after = torch.full_like(blocks, IGNORED)
    after[:, :-1] = blocks[:, 1:]
    special = torch.isin(after, torch.tensor(vocabulary.special))
    return LabelledBatch(blocks, after.masked_fill(special, IGNORED))


def sliding_batches(
    stream: np.ndarray, block: int, stride: int, vocabulary: Vocabulary, batch_size: int = 32
) -> Iterator[HeldOut]:
    """Windows of `block` tokens that start every `stride` tokens; only tokens that are new in a window are targets.

    So every token is predicted once and, but for the first few, from at least `block - stride` tokens before it. Where
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
                known = starts[first + row - 1] + block - start  # tokens of the window that were targets before
                labelled.labels[row, : max(0, known - 1)] = IGNORED
        places = torch.tensor(rows)[:, None] + torch.arange(1, blocks.shape[1] + 1)
        yield HeldOut(labelled.ids, labelled.labels, places)
