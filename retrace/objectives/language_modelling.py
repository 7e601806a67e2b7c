"""Language modelling on blocks of running text: what masked and causal modelling share, and the causal one.

They differ in how a block is labelled: which positions are predicted, and which token is right there. In causal
modelling (Radford et al. 2018) each token is predicted from those before it.
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

IGNORED = -100  # the label of a position that is not asked


@dataclass(frozen=True)
class LabelledBatch:
    """Blocks as the model sees them, and what it is asked at each position, both (B, T)."""

    ids: Tensor
    labels: Tensor

    def to(self, device: torch.device) -> "LabelledBatch":
        """The same on another device."""
        return LabelledBatch(self.ids.to(device), self.labels.to(device))


@dataclass(frozen=True)
class HeldOut(LabelledBatch):
    """Blocks of a held-out stream, and where in it the token stands that each position is asked for, (B, T)."""

    places: Tensor


Label = Callable[[Tensor, torch.Generator], LabelledBatch]
Answers = Callable[[Tensor, Tensor], Tensor]  # a model as `retrace.models.language_model` describes


class BlockModelling:
    """The pretraining objective: blocks at a random offset each epoch, labelled anew."""

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
        """The loss summed over the labels."""
        return token_loss(model, batch)

    def tokens(self, batch: LabelledBatch) -> int:
        """All tokens of the blocks; there is no padding."""
        return batch.ids.numel()


def token_loss(model: Answers, batch: LabelledBatch) -> tuple[Tensor, int]:
    """The negative log likelihood summed over the labels, in nats, and how many there are."""
    scores, labels = target_scores(model, batch)
    return functional.cross_entropy(scores, labels, reduction="sum"), len(labels)


def target_scores(model: Answers, batch: LabelledBatch) -> tuple[Tensor, Tensor]:
    """The scores where the model is asked, (N, V), and the labels there, (N,)."""
    at = batch.labels != IGNORED
    return model(batch.ids, at).float(), batch.labels[at]


@torch.no_grad()
def mean_loss(model: Answers, batches: Iterable[LabelledBatch], device: Device) -> tuple[float, int]:
    """The mean loss of a label in nats, and how many labels there are; processes share the batches.

    Raises InputError where there are none: the vocabulary lacks all of the text.
    """
    total, seen = 0.0, 0
    for batch, counts in device.share_batches(batches):
        with device.autocast():
            loss, count = token_loss(model, batch.to(device.torch_device))
        if counts:
            total, seen = total + loss.item(), seen + count
    summed, labels = device.all_reduce_sum([total, seen])
    if not labels:
        raise InputError("the validation text has no token that a model can be asked: the vocabulary lacks all of it")
    return summed / labels, int(labels)


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
