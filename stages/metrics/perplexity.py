"""Perplexity a token, a word and a byte with its interval, and the unigram model that a language model must beat.

The tokens of a document are not independent, so documents are resampled and not tokens. A perplexity is made
of sums over documents (losses, tokens asked, tokens, words, bytes), which a resample draws together, as
Efron and Tibshirani 1993 (section 10.3) bootstrap a ratio. Blocks of the stream may hold several documents:
each token that is asked belongs to the one that it stands in. Passages are resampled as documents are.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from stages.corpus.text import count_words
from stages.corpus.tokenizer import SubwordTokenizer
from stages.harness.settings import require
from stages.metrics.health import not_above
from stages.metrics.intervals import Interval, centred_interval, percentile_interval
from stages.metrics.resampling import Figures, Resampled, draw

CHUNK = 1 << 20  # tokens counted at a time, so that a stream is never all in memory
FROM_NATS: Mapping[str, Callable[[float], float]] = {
    "per_token": math.exp,
    "per_word": math.exp,
    "bits_per_byte": lambda nats: nats / math.log(2),
}


@dataclass(frozen=True)
class PerplexitySettings:
    """How perplexity is measured."""

    passages: int = 64  # passages for pseudo-perplexity
    mask_rate: float = 0.15  # share of tokens masked for masked perplexity
    seed: int = 0  # draws the passages
    stride: int = 64  # tokens from one window to the next for causal perplexity

    def __post_init__(self) -> None:
        for field in ("passages", "stride"):
            require(getattr(self, field) > 0, field, getattr(self, field), "expected a whole number above 0")
        require(0 < self.mask_rate < 1, "mask_rate", self.mask_rate, "expected a number between 0 and 1")


@dataclass(frozen=True)
class Sizes:
    """The sizes of documents, (D,) each: tokens, words as the file separates them, and UTF-8 bytes."""

    tokens: np.ndarray
    words: np.ndarray
    bytes: np.ndarray

    @classmethod
    def of(cls, documents: Iterable[str], tokenizer: SubwordTokenizer) -> "Sizes":
        """The sizes of texts, special tokens at their ends among the tokens, as a stream has them."""
        rows = [
            (len(tokenizer.encode_documents([text])[0]), count_words(text), len(text.encode())) for text in documents
        ]
        return cls(*np.array(rows, dtype=np.int64).T)


@dataclass(frozen=True)
class Losses:
    """What a model loses on documents, in nats."""

    mean: float  # of a token that is asked
    sums: np.ndarray  # (D,), over the tokens of each document that are asked
    asked: np.ndarray  # (D,), how many they are


Measured = tuple[Losses, Sizes]  # of the same documents


def perplexities(losses: Losses, sizes: Sizes) -> dict[str, float]:
    """Perplexity a token and a word, and bits a byte.

    A masked model's loss is measured on some of the tokens; a word and a byte are taken to hold as
    many tokens there as in the whole text.
    """
    whole = (int(size.sum()) for size in (sizes.tokens, sizes.words, sizes.bytes))
    return {name: FROM_NATS[name](nats) for name, nats in _in_nats(losses.mean, *whole).items()}


def resampled(losses: Losses, sizes: Sizes) -> Resampled:
    """A token's, a word's and a byte's loss in nats for weights of documents (R, D).

    Not a number in a resample that asks no token.
    """
    columns = np.stack([losses.sums, losses.asked, sizes.tokens, sizes.words, sizes.bytes], axis=1)  # (D, 5)

    def figures(weights: np.ndarray) -> Figures:
        sums, asked, *whole = (weights @ columns).T
        with np.errstate(invalid="ignore"):
            return _in_nats(sums / asked, *whole)

    return figures


def intervals(drawn: Figures) -> dict[str, Interval]:
    """Of perplexities and bits, from resampled nats: a percentile interval's ends can be told on any scale."""
    return {
        name: {end: FROM_NATS[name](nats) for end, nats in percentile_interval(values).items()}
        for name, values in drawn.items()
    }


def with_intervals(measured: Mapping[str, Measured], unigram: Measured, resamples: int, seed: int) -> dict[str, Any]:
    """The report: each measure's figures, and whether the first measure is better than `unigram`, by the interval.

    Both are of the same documents, so the same resamples are drawn for them, and their differences are
    paired. One document does not say how documents differ: its figures have no interval.
    """
    report: dict[str, Any] = {}
    drawn = {}
    for name, (losses, sizes) in [*measured.items(), ("unigram", unigram)]:
        documents = len(losses.sums)
        drawn[name] = draw({name: resampled(losses, sizes)}, documents, resamples, seed)[name]
        report[name] = perplexities(losses, sizes)
        if documents > 1:
            report[name]["interval"] = intervals(drawn[name])
    model = next(iter(measured))
    differences = drawn["unigram"]["per_token"] - drawn[model]["per_token"]
    likelihoods = (-measured[model][0].mean, -unigram[0].mean)
    interval = centred_interval(likelihoods[0] - likelihoods[1], differences)
    flags = not_above("log likelihood a token", "unigram", *likelihoods, interval)
    return report | {"beats_unigram": not flags, "health": flags}


def unigram_losses(
    train: np.ndarray, held_out: np.ndarray, lengths: np.ndarray, vocabulary: int, special: tuple[int, ...]
) -> Losses:
    """What held-out documents lose under training frequencies, one added to each count.

    `held_out` are documents one after the other, of `lengths` (D,). Special tokens are left out on both
    sides, as they are in the masked loss.
    """
    seen, asked = _counts(train, vocabulary, special), _counts(held_out, vocabulary, special)
    losses = -np.log((seen + 1) / (seen.sum() + vocabulary - len(special)))  # (V,)
    ordinary = np.ones(vocabulary)
    ordinary[list(special)] = 0
    documents = [held_out[start:end] for start, end in pairwise([0, *np.cumsum(lengths)])]
    return Losses(
        float((asked * losses).sum() / asked.sum()),
        np.array([(losses * ordinary)[document].sum() for document in documents]),
        np.array([ordinary[document].sum() for document in documents]),
    )


def _in_nats(loss: Any, tokens: Any, words: Any, size: Any) -> dict[str, Any]:
    """A token's, a word's and a byte's share of the loss, of one text or of R."""
    return {"per_token": loss, "per_word": loss * tokens / words, "bits_per_byte": loss * tokens / size}


def _counts(stream: np.ndarray, vocabulary: int, special: tuple[int, ...]) -> np.ndarray:
    counts = np.zeros(vocabulary, dtype=np.int64)
    for start in range(0, len(stream), CHUNK):
        counts += np.bincount(stream[start : start + CHUNK], minlength=vocabulary)
    counts[list(special)] = 0
    return counts
