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

from retrace.core.settings import LARGEST_SEED, require
from retrace.datasets.text import count_words
from retrace.statistics.comparisons import not_above
from retrace.statistics.intervals import Figures, Resampled, centred_interval, draw, held, percentile_interval
from retrace.tokens.tokenizer import SubwordTokenizer, token_id

ENDS = 2  # tokens that begin and end a document
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
        require(0 <= self.seed <= LARGEST_SEED, "seed", self.seed, f"expected 0 to {LARGEST_SEED}")
        for field in ("passages", "stride"):
            require(getattr(self, field) > 0, field, getattr(self, field), "expected a whole number above 0")
        require(0 < self.mask_rate < 1, "mask_rate", self.mask_rate, "expected a number between 0 and 1")


@dataclass(frozen=True)
class Sizes:
    """What documents hold that a model can be asked, (D,) each: tokens, words and UTF-8 bytes.

    Tokens are ordinary ones: neither those that begin and end a document nor the unknown token, for which no model
    is asked. What the unknown token stands for is left out of words and bytes too. Words are separated by white
    space, which the bytes hold.
    """

    tokens: np.ndarray
    words: np.ndarray
    bytes: np.ndarray

    @classmethod
    def of(cls, documents: Iterable[str], tokenizer: SubwordTokenizer) -> tuple[np.ndarray, "Sizes"]:
        """How many tokens each text is in a stream, special ones at its ends among them, (D,), and the sizes."""
        unknown = None if tokenizer.special.unknown is None else token_id(tokenizer, tokenizer.special.unknown)
        rows = []
        for text in documents:
            (ids,) = tokenizer.encode_documents([text])
            left_out = 0 if unknown is None else ids.count(unknown)
            known = tokenizer.known(text) if left_out else text
            rows.append((len(ids), len(ids) - ENDS - left_out, count_words(known), len(known.encode())))
        lengths, *sizes = np.array(rows, dtype=np.int64).reshape(-1, 4).T
        return lengths, cls(*sizes)


@dataclass(frozen=True)
class Losses:
    """What a model loses on documents, in nats."""

    mean: float  # of a token that is asked; not a number where none is
    sums: np.ndarray  # (D,), over the tokens of each document that are asked
    asked: np.ndarray  # (D,), how many they are


Measured = tuple[Losses, Sizes]  # of the same documents


def perplexities(losses: Losses, sizes: Sizes) -> dict[str, float | None]:
    """Perplexity a token and a word, and bits a byte; None where there is no such figure, as `as_figure` says.

    A word's and a byte's are of all the nats of the text, over its words and its bytes, as in EleutherAI's
    lm-evaluation-harness. These are the mean of a token that is asked times the ordinary tokens: a masked model's
    loss is measured on some of the tokens, and the others are taken to cost as much.
    """
    return {name: as_figure(name, nats) for name, nats in nats_of(losses, sizes).items()}


def nats_of(losses: Losses, sizes: Sizes) -> dict[str, float]:
    """A token's, a word's and a byte's loss in nats."""
    return _in_nats(losses.mean, *(float(size.sum()) for size in (sizes.tokens, sizes.words, sizes.bytes)))


def as_figure(name: str, nats: float) -> float | None:
    """A figure of FROM_NATS; None where nothing was asked, or where the number is too large to be written down.

    A word of a text without spaces may cost more than the 709 nats whose exponential a float holds.
    """
    if not math.isfinite(nats):
        return None
    try:
        return float(FROM_NATS[name](nats))
    except OverflowError:
        return None


def resampled(losses: Losses, sizes: Sizes) -> Resampled:
    """A token's, a word's and a byte's loss in nats for weights of documents (R, D).

    Not a number in a resample that asks no token.
    """
    columns = np.stack([losses.sums, losses.asked, sizes.tokens, sizes.words, sizes.bytes], axis=1)  # (D, 5)

    def figures(weights: np.ndarray) -> Figures:
        sums, asked, *whole = (weights @ columns).T
        with np.errstate(invalid="ignore"):
            mean = sums / asked
        return _in_nats(mean, *whole)

    return figures


def intervals(losses: Losses, sizes: Sizes, drawn: Figures) -> dict[str, dict[str, float | None]]:
    """Of perplexities and bits, from resampled nats: a percentile interval's ends can be told on any scale."""
    return {
        name: {end: as_figure(name, at) for end, at in held(nats, percentile_interval(drawn[name])).items()}
        for name, nats in nats_of(losses, sizes).items()
    }


def with_intervals(measured: Mapping[str, Measured], unigram: Measured, resamples: int, seed: int) -> dict[str, Any]:
    """The report: each measure's figures, and whether the first measure is better than `unigram`, by the interval.

    Both are of the same documents, so the same resamples are drawn for them, and their differences are
    paired. One document does not say how documents differ: its figures have no interval. Where nothing of a text can
    be asked there are no figures, and a flag says so.
    """
    report: dict[str, Any] = {}
    drawn = {}
    for name, (losses, sizes) in [*measured.items(), ("unigram", unigram)]:
        documents = int((losses.asked > 0).sum())
        report[name] = perplexities(losses, sizes)
        if not losses.asked.any():
            continue
        drawn[name] = draw({name: resampled(losses, sizes)}, len(losses.sums), resamples, seed)[name]
        if documents > 1:
            report[name]["interval"] = intervals(losses, sizes, drawn[name])
    model = next(iter(measured))
    if not {model, "unigram"} <= drawn.keys():
        return report | {"beats_unigram": None, "health": {"nothing_asked": "no token of the text can be asked"}}
    if any("interval" not in report[name] for name in (model, "unigram")):
        return report | {"beats_unigram": None, "health": {}}  # one document does not tell
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
        float((asked * losses).sum() / asked.sum()) if asked.any() else math.nan,
        np.array([(losses * ordinary)[document].sum() for document in documents]),
        np.array([ordinary[document].sum() for document in documents]),
    )


def _in_nats(loss: Any, tokens: Any, words: Any, size: Any) -> dict[str, Any]:
    """A token's, a word's and a byte's share of the loss, of one text or of R."""
    with np.errstate(divide="ignore", invalid="ignore"):  # a text, or a resample, that holds nothing to be asked
        return {"per_token": loss, "per_word": np.divide(loss * tokens, words),
                "bits_per_byte": np.divide(loss * tokens, size)}  # fmt: skip


def _counts(stream: np.ndarray, vocabulary: int, special: tuple[int, ...]) -> np.ndarray:
    counts = np.zeros(vocabulary, dtype=np.int64)
    for start in range(0, len(stream), CHUNK):
        counts += np.bincount(stream[start : start + CHUNK], minlength=vocabulary)
    counts[list(special)] = 0
    return counts
