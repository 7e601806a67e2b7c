"""Losses of a language model on held-out text: by document, and by passage for the pseudo-perplexity.

Pseudo-perplexity (Salazar et al. 2020) masks each token of a passage in turn.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from retrace.compute.device import Device
from retrace.compute.tensors import seeded
from retrace.core.errors import InputError
from retrace.core.paths import UNKNOWN
from retrace.objectives.language_modelling import IGNORED, ForwardPass, HeldOut, mask_id
from retrace.perplexity.measures import Losses, Sizes
from retrace.tokens.tokenizer import SubwordTokenizer, Vocabulary, token_id

ENDS = 2  # tokens that begin and end a document
ROWS = 64  # masked copies of a passage in one batch


def sizes_of(documents: Iterable[str], tokenizer: SubwordTokenizer) -> tuple[np.ndarray, Sizes]:
    """Each document's number of tokens in a stream, begin and end token included, (D,), and the documents' sizes."""
    rows = []
    for text in documents:
        (ids,) = tokenizer.encode_documents([text])
        left_out = ids.count(tokenizer.unknown)
        known = tokenizer.known(text) if left_out else text
        rows.append((len(ids), len(ids) - ENDS - left_out, len(known.split()), len(known.encode())))
    lengths, *sizes = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    return lengths, Sizes(*sizes)


@torch.no_grad()
def document_losses(model: ForwardPass, batches: Iterable[HeldOut], lengths: np.ndarray, device: Device) -> Losses:
    """The losses on the documents of a stream, of `lengths` (D,); processes share the batches.

    A token counts for its document, wherever blocks begin and end. The mean equals that of `mean_loss` to the bit,
    and is NaN if no token was scored. Raises InputError if the loss is not finite.
    """
    ends = np.cumsum(lengths)
    total, sums, scored = 0.0, np.zeros(len(ends)), np.zeros(len(ends))
    for batch, counts in device.share_batches(batches):
        with device.autocast():
            asked = batch.to(device)
            logs = model(asked.ids, asked.at).float().log_softmax(-1)  # once, as it is the largest tensor
            each, loss = (functional.nll_loss(logs, asked.targets, reduction=kind) for kind in ("none", "sum"))
        if counts:
            documents = np.searchsorted(ends, batch.places[batch.has_target].numpy(), side="right")
            total += loss.item()
            sums += np.bincount(documents, each.cpu().numpy(), minlength=len(ends))
            scored += np.bincount(documents, minlength=len(ends))
    total, *of_documents = device.all_reduce_sum([total, *sums, *scored])
    if not math.isfinite(total):
        raise InputError(f"the model's loss on held-out text is {total}; its weights may not be finite")
    sums, scored = np.array(of_documents).reshape(2, -1)
    return Losses(total / scored.sum() if scored.any() else math.nan, sums, scored)


@dataclass(frozen=True)
class Passage:
    """Token ids of a text with its special tokens, and its numbers of words and bytes.

    A word that was cut counts in proportion to the bytes that were kept.
    """

    ids: list[int]
    words: float
    bytes: int


def sample_passages(
    documents: Iterator[str], tokenizer: SubwordTokenizer, count: int, length: int, seed: int
) -> list[Passage]:
    """Draw `count` paragraphs, or all if there are fewer, truncated to at most `length` tokens at the end of a word.

    A word longer than that is cut at a character. Headings, and paragraphs with unknown words, are skipped if there are
    others: an unknown word is not scored, and its neighbours would be predicted without it.
    """
    paragraphs = [line for document in documents for line in document.splitlines() if line.strip()]
    text = [p for p in paragraphs if not p.startswith("=")] or paragraphs
    whole = [p for p in text if UNKNOWN not in p] or text
    order = torch.randperm(len(whole), generator=seeded(seed, "passages")).tolist()
    return [_cut(whole[index], tokenizer, length) for index in sorted(order[:count])]


def _cut(paragraph: str, tokenizer: SubwordTokenizer, length: int) -> Passage:
    words = paragraph.split()
    while len(ids := tokenizer.encode_documents([" ".join(words)])[0]) > length and len(words) > 1:
        # Tokens per word vary little, so this is close, and one or two rounds are enough.
        words = words[: max(1, min(len(words) - 1, len(words) * length // len(ids)))]
    if len(ids) > length:
        return _cut_word(words[0], tokenizer, length)
    text = tokenizer.known(" ".join(words))
    return Passage(ids, len(text.split()), len(text.encode()))


def _cut_word(word: str, tokenizer: SubwordTokenizer, length: int) -> Passage:
    """The beginning of a word, up to the last character whose tokens are all among the first `length`."""
    begin, end = (token_id(tokenizer, token) for token in (tokenizer.special.begin, tokenizer.special.end))
    tokens = tokenizer.located(word)
    kept = max(0, length - 2)
    while kept and tokens[kept].start < tokens[kept - 1].end:
        kept -= 1
    whole = len(tokenizer.known(word).encode())
    part = len(tokenizer.known(word, tokens[kept].start).encode())
    return Passage([begin, *(token.number for token in tokens[:kept]), end], part / whole if whole else 0, part)


def pseudo_losses(
    model: nn.Module, passages: list[Passage], vocabulary: Vocabulary, device: Device
) -> tuple[Losses, Sizes]:
    """The losses on the passages, and their sizes; processes share the batches."""
    # A passage's place is its number, as if each were a document of one token.
    losses = document_losses(model, _batches(passages, vocabulary), np.ones(len(passages), dtype=np.int64), device)
    words, sizes = np.array([p.words for p in passages]), np.array([p.bytes for p in passages])
    return losses, Sizes(losses.scored, words, sizes)


def _batches(passages: list[Passage], vocabulary: Vocabulary) -> Iterator[HeldOut]:
    """Copies of each passage with one token masked in each, (≤ ROWS, T); their places are the passage's number."""
    special = torch.tensor(vocabulary.special)
    for number, passage in enumerate(passages):
        ids = torch.tensor(passage.ids)
        ordinary = torch.nonzero(~torch.isin(ids, special))[:, 0]
        for places in ordinary.split(ROWS) if len(ordinary) else ():
            at = nn.functional.one_hot(places, len(ids)).bool()
            masked = ids.expand(len(places), -1).masked_fill(at, mask_id(vocabulary))
            yield HeldOut(masked, ids.where(at, IGNORED), torch.full_like(masked, number))
