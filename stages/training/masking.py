"""Masked language modelling on blocks (Devlin et al. 2018), with a fixed number of masks a block.

A fixed number keeps shapes constant. Every chosen token is replaced by the mask: Wettig et al. 2022
(Should You Mask 15% in Masked Language Modeling?) found 80/10/10 of no use and higher rates better.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from stages.corpus.blocks import cut_blocks
from stages.harness.device import Device
from stages.nets.vocabulary import Vocabulary
from stages.training.randomness import seeded

IGNORED = -100  # the label of a token that is not predicted


@dataclass(frozen=True)
class Masked:
    """Masked blocks and what stood under the masks, both (B, T)."""

    ids: Tensor
    labels: Tensor


def mask_blocks(blocks: Tensor, rate: float, vocabulary: Vocabulary, generator: torch.Generator) -> Masked:
    """Mask `rate` of each block's tokens, special tokens never: blocks (B, T) → ids and labels (B, T)."""
    count = max(1, int(blocks.shape[1] * rate))
    special = torch.tensor(vocabulary.special)
    draw = torch.rand(blocks.shape, generator=generator).masked_fill(torch.isin(blocks, special), -1.0)
    chosen = draw.topk(count, dim=1).indices
    labels = torch.full_like(blocks, IGNORED).scatter(1, chosen, blocks.gather(1, chosen))
    labels[torch.isin(labels, special)] = IGNORED  # a block of little else than special tokens
    return Masked(torch.where(labels == IGNORED, blocks, vocabulary.mask), labels)


class MaskedModelling:
    """The pretraining objective: blocks at a random offset each epoch, masked anew."""

    def __init__(
        self, stream: np.ndarray, block: int, batch_size: int, rate: float, vocabulary: Vocabulary, seed: int,
        device: torch.device,
    ) -> None:  # fmt: skip
        self._stream, self._block, self._batch, self._rate = stream, block, batch_size, rate
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
            masked = mask_blocks(batch, self._rate, self._vocabulary, generator)
            yield Masked(masked.ids[share].to(self._device), masked.labels[share].to(self._device))

    def loss(self, model: nn.Module, batch: Masked) -> tuple[Tensor, int]:
        """The loss summed over the masked tokens."""
        return masked_loss(model, batch)

    def tokens(self, batch: Masked) -> int:
        """All tokens of the blocks; there is no padding."""
        return batch.ids.numel()


def masked_loss(model: nn.Module, batch: Masked) -> tuple[Tensor, int]:
    """The negative log likelihood summed over the masked tokens, in nats, and how many there are."""
    count = int((batch.labels != IGNORED).sum())
    return model(input_ids=batch.ids, labels=batch.labels).loss.float() * count, count


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
        masked = mask_blocks(batch, rate, vocabulary, generator)
        if number % device.processes != device.rank:
            continue
        with device.autocast():
            loss, count = masked_loss(model, Masked(masked.ids.to(device.place), masked.labels.to(device.place)))
        total, seen = total + loss.item(), seen + count
    summed, tokens = device.summed([total, seen])
    return summed / tokens, int(tokens)
