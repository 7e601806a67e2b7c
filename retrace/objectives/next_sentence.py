"""Masked language modelling with next-sentence prediction (Devlin et al. 2018, section 3.1).

The model reads [CLS] A [SEP] B [SEP] and predicts the masked tokens, and whether B follows A in the text, as in half of
the pairs, or is from another document.

Only the words may tell the two kinds of pair apart. So A and the length of B are drawn before the kind. In both kinds B
begins with a sentence of its passage other than the first, and may end within a sentence.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from retrace.compute.device import Device
from retrace.compute.tensors import mask_of, padded, rounded_up, seeded
from retrace.core.errors import InputError
from retrace.objectives.language_modelling import IGNORED, Inputs, LabelledBatch, Masking, mask_blocks, masked_of
from retrace.tokens.blocks import find_documents
from retrace.tokens.settings import SHORTEST_PAIR
from retrace.tokens.tokenizer import SubwordTokenizer, Vocabulary

SPECIALS = 3  # [CLS] and two [SEP]
SENTENCE_ENDS = (".", "!", "?", "Ġ.", "Ġ!", "Ġ?")  # Ġ: the space that byte-level tokens begin with
DRAWS = 6  # random numbers per pair
WIDTHS = 4  # number of input lengths that a model is compiled for


class PairInputs(NamedTuple):
    """The inputs of a `PairModel` for a batch, on its device, and the gold relations."""

    tokens: Inputs
    segments: Tensor  # (B, T)
    mask: Tensor  # (B, T)
    unrelated: Tensor  # (B,)


@dataclass(frozen=True)
class Pairs(LabelledBatch):
    """A batch of pairs; T is the length of the longest."""

    segments: Tensor  # (B, T), 0 for [CLS] A [SEP], 1 for B [SEP]
    mask: Tensor  # (B, T), 0 at padding
    unrelated: Tensor  # (B,), 1 if B is from another document, as in transformers

    def to(  # pyright: ignore[reportIncompatibleMethodOverride] - for another model
        self, device: Device, rounded: bool = False
    ) -> PairInputs:
        """The model's inputs."""
        rest = (device.send(tensor) for tensor in (self.segments, self.mask, self.unrelated))
        return PairInputs(super().to(device, rounded), *rest)

    def widened(self, width: int) -> "Pairs":
        """The batch padded to `width`."""
        fills = {"ids": 0, "labels": IGNORED, "segments": 0, "mask": 0}
        more = (0, width - self.ids.shape[1])
        return replace(self, **{name: functional.pad(getattr(self, name), more, value=fills[name]) for name in fills})


class PairModelling:
    """The pretraining objective: passages of the documents, cut into pairs and masked anew each epoch."""

    def __init__(
        self, stream: np.ndarray, tokenizer: SubwordTokenizer, block: int, batch_size: int, masking: Masking, seed: int
    ) -> None:
        """Pairs of at most `block` tokens, masked.

        Raises InputError if the text has fewer than two documents.
        """
        self._stream, self._batch, self._masking = stream, batch_size, masking
        self._masks = masked_of(block, masking.rate)  # of a full pair
        self._seed, self._room = seed, block - SPECIALS
        self._vocabulary = Vocabulary.of(tokenizer)
        self._ends = [end for mark in SENTENCE_ENDS if (end := tokenizer.token_to_id(mark)) is not None]
        documents = find_documents(stream, self._vocabulary.begin)
        self._documents = documents[documents[:, 1] - documents[:, 0] >= SHORTEST_PAIR]
        if len(self._documents) < 2:
            found = f"the text has {len(self._documents)}"
            raise InputError(f"next-sentence prediction needs two documents of {SHORTEST_PAIR} tokens or more; {found}")
        lengths = self._documents[:, 1] - self._documents[:, 0]
        counts = np.maximum(1, lengths // self._room)
        self._passages = np.repeat(np.arange(len(lengths)), counts)  # document of each
        self._number = np.concatenate([np.arange(count) for count in counts])  # within it
        self.steps = max(1, len(self._passages) // batch_size)

    def batches(self, epoch: int, with_rest: bool = False) -> Iterator[Pairs]:
        """The epoch's batches, on the host; `with_rest`, also a smaller one with the remaining pairs."""
        generator = seeded(self._seed, f"pairs epoch {epoch}")
        order = torch.randperm(len(self._passages), generator=generator).numpy()
        shift = float(torch.rand(1, generator=generator))
        for step in range(-(-len(order) // self._batch) if with_rest else self.steps):
            chosen = order[step * self._batch : (step + 1) * self._batch]
            draws = torch.rand((len(chosen), DRAWS), generator=generator, dtype=torch.float64).numpy()
            drawn = [self._pair(passage, shift, row) for passage, row in zip(chosen, draws, strict=True)]
            yield self._collate(drawn, generator)

    def sizes(self, batch: Pairs) -> tuple[int, int]:
        """The number of masked tokens, and of all tokens without padding."""
        return batch.count, int(batch.mask.sum())

    def part(self, batch: Pairs, rows: slice, device: Device) -> PairInputs:
        """Some of the pairs."""
        pairs, compiled = batch[rows], device.compiler is not None
        if compiled:
            pairs = pairs.widened(rounded_up(pairs.ids.shape[1], self._room + SPECIALS, WIDTHS))
        return pairs.to(device, rounded=compiled)

    def loss(self, model: nn.Module, part: PairInputs) -> Tensor:
        """The summed loss of the masked tokens plus that of the pairs.

        The paper adds the mean over masked tokens and the mean over pairs. The training loop divides by the number of
        masked tokens, so the loss of a pair is weighted by the number of masks in a full pair.
        """
        filled, relations = model(*part.tokens, part.segments, part.mask)
        related = functional.cross_entropy(relations.float(), part.unrelated, reduction="sum")
        return filled + self._masks * related

    def _pair(self, passage: int, shift: float, draws: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        """A, B and whether B is from another document; `shift` and `draws` (DRAWS,) are in [0, 1)."""
        tokens = self._tokens(passage, shift, draws[0])
        starts = self._sentence_starts(tokens)
        cut = int(starts[int(draws[1] * len(starts))])
        elsewhere = self._tokens(self._other_passage(passage, draws[2]), shift, draws[3])
        starts = self._sentence_starts(elsewhere)
        start = int(starts[int(draws[5] * len(starts))])
        # Both kinds of B begin at any sentence and are equally long, so that B alone does not tell them apart.
        length = min(len(tokens) - cut, len(elsewhere) - start)
        if draws[4] < 0.5:
            return tokens[:cut], tokens[cut : cut + length], False
        return tokens[:cut], elsewhere[start : start + length], True

    def _tokens(self, passage: int, shift: float, draw: float) -> np.ndarray:
        """A passage's tokens.

        A document's passages follow one another, shifted by the share `shift` of the document's remainder, so that they
        begin elsewhere each epoch. The last one loses the share `draw` of its last sentence; otherwise B would end
        where a sentence ends only in related pairs from short documents.
        """
        first, last = self._documents[self._passages[passage]]
        size, count = min(self._room, last - first), max(1, (last - first) // self._room)
        start = first + self._number[passage] * size + int(shift * (last - first - count * size + 1))
        tokens = np.asarray(self._stream[start : start + size], dtype=np.int64)
        if start + size < last:
            return tokens
        sentence = len(tokens) - int(self._sentence_starts(tokens)[-1])
        return tokens[: max(2, len(tokens) - int(draw * sentence))]

    def _other_passage(self, passage: int, draw: float) -> int:
        """A passage of another document; all of those are equally likely."""
        first, last = np.searchsorted(self._passages, self._passages[passage] + np.arange(2))  # of this document
        chosen = int(draw * (len(self._passages) - (last - first)))
        return int(chosen if chosen < first else chosen + last - first)

    def _sentence_starts(self, tokens: np.ndarray) -> np.ndarray:
        """The positions where sentences other than the first begin; all positions if there are none."""
        places = np.flatnonzero(np.isin(tokens[:-1], self._ends)) + 1
        return places if len(places) else np.arange(1, len(tokens))

    def _collate(self, pairs: list[tuple[np.ndarray, np.ndarray, bool]], generator: torch.Generator) -> Pairs:
        begin, end = self._vocabulary.begin, self._vocabulary.end
        ids = [np.array([begin, *left, end, *right, end]) for left, right, _ in pairs]
        segments = [np.arange(len(left) + len(right) + SPECIALS) >= len(left) + 2 for left, right, _ in pairs]
        labelled = mask_blocks(padded(ids, self._vocabulary.pad), self._masking, self._vocabulary, generator)
        unrelated = torch.tensor([int(elsewhere) for _, _, elsewhere in pairs])
        return Pairs(labelled.ids, labelled.labels, padded(segments, 0), mask_of(ids), unrelated)


@torch.no_grad()
def relation_accuracy(model: nn.Module, batches: Iterable[Pairs], device: Device) -> float:
    """The accuracy of predicting whether B follows A; processes share the batches."""
    right = seen = 0.0
    for batch, counts in device.share_batches(batches):
        pairs = batch.to(device)
        tokens = pairs.tokens
        with device.autocast():
            # No token is asked for: even without gradients, their loss takes three products with the vocabulary.
            _, relations = model(tokens.ids, tokens.at[:0], None, pairs.segments, pairs.mask)
        if counts:
            right += float((relations.argmax(-1) == pairs.unrelated).sum())
            seen += len(relations)
    right, seen = device.all_reduce_sum([right, seen])
    return right / seen
