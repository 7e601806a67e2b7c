"""Masked language modelling on blocks (Devlin et al. 2018), with a fixed number of masks a block.

A fixed number keeps shapes constant. Unless settings say otherwise every chosen token is replaced by the
mask: Wettig et al. 2022 (Should You Mask 15% in Masked Language Modeling?) found BERT's 80/10/10 of no
use and higher rates better. Evaluation always masks single tokens, all of them with the mask.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from stages.corpus.blocks import cut_blocks
from stages.harness.device import Device
from stages.nets.vocabulary import Vocabulary
from stages.training.randomness import seeded
from stages.training.settings import MaskedAs

IGNORED = -100  # the label of a token that is not predicted


@dataclass(frozen=True)
class Masking:
    """Which tokens are masked, and how."""

    rate: float  # share of a block's tokens
    masked_as: MaskedAs = "mask"
    continues: Tensor | None = None  # (V,), whether a token goes on with a word; words are then masked as a whole


@dataclass(frozen=True)
class Masked:
    """Masked blocks and what stood under the masks, both (B, T)."""

    ids: Tensor
    labels: Tensor


def mask_blocks(blocks: Tensor, masking: Masking, vocabulary: Vocabulary, generator: torch.Generator) -> Masked:
    """Mask a share of each block's tokens, special tokens never: blocks (B, T) → ids and labels (B, T)."""
    special = torch.isin(blocks, torch.tensor(vocabulary.special))
    chosen = _chosen(blocks, special, masking, generator)
    labels = blocks.where(chosen, IGNORED)
    if masking.masked_as == "mask":
        return Masked(blocks.masked_fill(chosen, vocabulary.mask), labels)
    fate = torch.rand(blocks.shape, generator=generator)
    ordinary = torch.tensor([token for token in range(vocabulary.size) if token not in vocabulary.special])
    others = ordinary[torch.randint(len(ordinary), blocks.shape, generator=generator)]
    ids = blocks.masked_fill(chosen & (fate < 0.8), vocabulary.mask)
    return Masked(others.where(chosen & (fate >= 0.9), ids), labels)


def _chosen(blocks: Tensor, special: Tensor, masking: Masking, generator: torch.Generator) -> Tensor:
    """The tokens with the highest draws, (B, T); the tokens of a word share one."""
    count = max(1, int(blocks.shape[1] * masking.rate))
    draw = torch.rand(blocks.shape, generator=generator)
    word = None
    if masking.continues is not None:
        begins = ~masking.continues[blocks]
        begins[:, 0] = True  # a block may begin within a word
        word = begins.long().cumsum(1) - 1
        draw = draw.gather(1, word)
    draw = draw.masked_fill(special, -1.0)
    chosen = torch.zeros_like(special).scatter(1, draw.topk(count, dim=1).indices, True) & ~special
    if word is not None:  # no part of a word for which there was no more room
        spared = torch.zeros_like(draw).scatter_reduce(1, word, (~chosen).float(), "amax")
        whole = chosen & (spared.gather(1, word) == 0)
        chosen = torch.where(whole.any(1, keepdim=True), whole, chosen)  # one long word is better than nothing
    return chosen


class MaskedModelling:
    """The pretraining objective: blocks at a random offset each epoch, masked anew."""

    def __init__(
        self, stream: np.ndarray, block: int, batch_size: int, masking: Masking, vocabulary: Vocabulary, seed: int,
        device: torch.device,
    ) -> None:  # fmt: skip
        self._stream, self._block, self._batch, self._masking = stream, block, batch_size, masking
        self._vocabulary, self._seed, self._device = vocabulary, seed, device
        self.steps = max(1, (len(cut_blocks(stream, block)) - 1) // batch_size)

    def batches(self, epoch: int, share: slice) -> Iterator[Masked]:
        """The epoch's masked batches, this process's share of each."""
        generator = seeded(self._seed, f"pretraining epoch {epoch}")
        offset = int(torch.randint(self._block, (1,), generator=generator)) % max(1, len(self._stream) - self._block)
        blocks = cut_blocks(self._stream, self._block, offset)
        order = torch.randperm(len(blocks), generator=generator).numpy()
        for step in range(self.steps):
            rows = np.sort(order[step * self._batch : (step + 1) * self._batch])
            batch = torch.from_numpy(blocks[rows].astype(np.int64))
            masked = mask_blocks(batch, self._masking, self._vocabulary, generator)
            yield Masked(masked.ids[share].to(self._device), masked.labels[share].to(self._device))

    def loss(self, model: nn.Module, batch: Masked) -> tuple[Tensor, int]:
        """The loss summed over the masked tokens."""
        return masked_loss(model, batch)

    def tokens(self, batch: Masked) -> int:
        """All tokens of the blocks; there is no padding."""
        return batch.ids.numel()


def masked_loss(model: nn.Module, batch: Masked) -> tuple[Tensor, int]:
    """The negative log likelihood summed over the masked tokens, in nats, and how many there are.

    `model` is asked as `stages.nets.language_model` describes.
    """
    at = batch.labels != IGNORED
    scores = model(batch.ids, at).float()  # (N, V)
    return functional.cross_entropy(scores, batch.labels[at], reduction="sum"), len(scores)


@torch.no_grad()
def validation_loss(
    model: nn.Module, stream: np.ndarray, block: int, rate: float, vocabulary: Vocabulary, device: Device,
    batch_size: int = 32,
) -> tuple[float, int]:  # fmt: skip
    """The mean loss in nats over fixed masks, and how many tokens it is over; the same for every epoch."""
    blocks = cut_blocks(stream, block)
    generator = seeded(0, "validation masks")
    total, seen = 0.0, 0
    for number, start in enumerate(range(0, len(blocks), batch_size)):
        batch = torch.from_numpy(blocks[start : start + batch_size].astype(np.int64))
        masked = mask_blocks(batch, Masking(rate), vocabulary, generator)
        if number % device.processes != device.rank:
            continue
        with device.autocast():
            loss, count = masked_loss(model, Masked(masked.ids.to(device.place), masked.labels.to(device.place)))
        total, seen = total + loss.item(), seen + count
    summed, tokens = device.summed([total, seen])
    return summed / tokens, int(tokens)
