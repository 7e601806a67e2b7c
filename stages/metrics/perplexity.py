"""Perplexity a token, a word and a byte, and the unigram model that a language model must beat."""

import math
from dataclasses import dataclass

import numpy as np

from stages.harness.settings import require

CHUNK = 1 << 20  # tokens counted at a time, so that a stream is never all in memory


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
class Text:
    """The size of a text: tokens, words as the file separates them, and UTF-8 bytes."""

    tokens: int
    words: int
    bytes: int


def perplexities(loss: float, text: Text) -> dict[str, float]:
    """From the mean loss of a token in nats: perplexity a token and a word, and bits a byte.

    A masked model's loss is measured on some of the tokens; a word and a byte are taken to hold as
    many tokens there as in the whole text.
    """
    return {
        "per_token": math.exp(loss),
        "per_word": math.exp(loss * text.tokens / text.words),
        "bits_per_byte": loss * text.tokens / text.bytes / math.log(2),
    }


def unigram_loss(train: np.ndarray, held_out: np.ndarray, vocabulary: int, special: tuple[int, ...]) -> float:
    """The mean loss in nats of held-out tokens under training frequencies, one added to each count.

    Special tokens are left out on both sides, as they are in the masked loss.
    """
    seen, asked = _counts(train, vocabulary, special), _counts(held_out, vocabulary, special)
    probabilities = (seen + 1) / (seen.sum() + vocabulary - len(special))
    return float(-(asked * np.log(probabilities)).sum() / asked.sum())


def _counts(stream: np.ndarray, vocabulary: int, special: tuple[int, ...]) -> np.ndarray:
    counts = np.zeros(vocabulary, dtype=np.int64)
    for start in range(0, len(stream), CHUNK):
        counts += np.bincount(stream[start : start + CHUNK], minlength=vocabulary)
    counts[list(special)] = 0
    return counts
