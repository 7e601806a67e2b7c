"""Pseudo-perplexity (Salazar et al. 2020): each token of a passage masked in turn, the others in sight."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from stages.corpus.text import UNKNOWN, count_words
from stages.corpus.tokenizer import SubwordTokenizer, token_id
from stages.harness.device import Device
from stages.metrics.perplexity import Losses, Sizes
from stages.nets.vocabulary import Vocabulary
from stages.training.held_out import summed_losses
from stages.training.language import IGNORED, Labelled, token_loss
from stages.training.masking import mask_id
from stages.training.randomness import seeded

ROWS = 64  # masked copies of a passage in one batch


@dataclass(frozen=True)
class Passage:
    """Token ids from the begin to the end of a text, and the words and bytes that those asked stand for.

    Of a word that is cut the share of its bytes is counted.
    """

    ids: list[int]
    words: float
    bytes: int


def sample_passages(
    documents: Iterator[str], tokenizer: SubwordTokenizer, count: int, length: int, seed: int
) -> list[Passage]:
    """Draw `count` paragraphs, or all there are, cut at a whole word to at most `length` tokens.

    A word longer than that is cut at a character. Headings, and paragraphs with left-out words, are passed over
    where others are to be had: a left-out word is not asked, and those around it are guessed without it.
    """
    paragraphs = [line for document in documents for line in document.splitlines() if line.strip()]
    text = [p for p in paragraphs if not p.startswith("=")] or paragraphs
    whole = [p for p in text if UNKNOWN not in p] or text
    order = torch.randperm(len(whole), generator=seeded(seed, "passages")).tolist()
    return [_cut(whole[index], tokenizer, length) for index in sorted(order[:count])]


def _cut(paragraph: str, tokenizer: SubwordTokenizer, length: int) -> Passage:
    words = paragraph.split()
    (ids,) = tokenizer.encode_documents([" ".join(words)])
    while len(ids) > length and len(words) > 1:
        # Tokens a word vary little, so this lands close and the loop turns once or twice.
        words = words[: max(1, min(len(words) - 1, len(words) * length // len(ids)))]
        (ids,) = tokenizer.encode_documents([" ".join(words)])
    if len(ids) > length:
        return _cut_word(words[0], tokenizer, length)
    text = tokenizer.known(" ".join(words))
    return Passage(ids, count_words(text), len(text.encode()))


def _cut_word(word: str, tokenizer: SubwordTokenizer, length: int) -> Passage:
    """The beginning of a word, up to the last character whose tokens are all among the first `length`."""
    begin, end = (token_id(tokenizer, token) for token in (tokenizer.roles.begin, tokenizer.roles.end))
    tokens = tokenizer.located(word)
    kept = max(0, length - 2)
    while kept and tokens[kept].start < tokens[kept - 1].end:
        kept -= 1
    whole = len(tokenizer.known(word).encode())
    part = len(tokenizer.known(word, tokens[kept].start).encode())
    return Passage([begin, *(token.number for token in tokens[:kept]), end], part / whole if whole else 0, part)


@torch.no_grad()
def pseudo_losses(
    model: nn.Module, passages: list[Passage], vocabulary: Vocabulary, device: Device
) -> tuple[Losses, Sizes]:
    """What the model loses on the passages, and their sizes; processes share the batches."""
    total, sums, asked = 0.0, np.zeros(len(passages)), np.zeros(len(passages))
    for (number, batch), counts in device.dealt(_batches(passages, vocabulary, device)):
        with device.autocast():
            loss, count = token_loss(model, batch)
        if counts:
            nats = loss.item()
            total += nats
            sums[number] += nats
            asked[number] += count
    losses = summed_losses(total, sums, asked, device)
    words, sizes = np.array([p.words for p in passages]), np.array([p.bytes for p in passages])
    return losses, Sizes(losses.asked, words, sizes)


def _batches(passages: list[Passage], vocabulary: Vocabulary, device: Device) -> Iterator[tuple[int, Labelled]]:
    """Copies of each passage, each with another token masked, (≤ ROWS, T), with the passage's number."""
    special = torch.tensor(vocabulary.special, device=device.place)
    for number, passage in enumerate(passages):
        ids = torch.tensor(passage.ids, device=device.place)
        ordinary = torch.nonzero(~torch.isin(ids, special))[:, 0]
        for places in ordinary.split(ROWS) if len(ordinary) else ():
            at = nn.functional.one_hot(places, len(ids)).bool()
            masked = ids.expand(len(places), -1).masked_fill(at, mask_id(vocabulary))
            yield number, Labelled(masked, ids.where(at, IGNORED))
