"""Perplexity per token and per word, and bits per byte, with intervals; and a unigram baseline.

reports/perplexity-details.json has all figures, reports/perplexity.json the headlines, and
reports/perplexity-documents.parquet the loss of every document, which `retrace review` compares between revisions.

The tokens of a document are not independent, so documents are resampled, not tokens. A perplexity is computed from sums
over documents (losses, scored tokens, tokens, words, bytes), which are resampled together, as Efron and Tibshirani 1993
(section 10.3) bootstrap a ratio. Passages are resampled like documents.
"""

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from retrace.core.files import atomic_file
from retrace.core.records import Record
from retrace.statistics.comparisons import flag_unless_better
from retrace.statistics.intervals import Figures, Resampled, centred_interval, clipped, percentile_interval, resample
from retrace.statistics.scales import Figure, Flags

PERPLEXITY, PERPLEXITY_DETAILS = Path("reports/perplexity.json"), Path("reports/perplexity-details.json")
DOCUMENTS, COLUMNS = Path("reports/perplexity-documents.parquet"), ("loss", "scored", "tokens", "words", "bytes")
UNITS = {
    "perplexity_per_token": Figure("perplexity", "lower"),
    "perplexity_per_word": Figure("perplexity", "lower"),
    "bits_per_byte": Figure("score", "lower"),
}
LIKELIHOOD = "log likelihood per token"  # compared in flags instead of perplexity, as higher is better
LANGUAGE_MODEL = "language model"  # in place of a method, for flags on held-out text
UNKNOWN_TOKENS = "unknown_tokens"  # the flag of a text of which more tokens than MOST_UNKNOWN are not scored
MOST_UNKNOWN = 0.1  # of a text's tokens; in WikiText-2's test text it is 5%, as <unk> is one of its words
CHUNK = 1 << 20  # tokens counted at a time, so that the whole stream is never in memory


class PerplexityFigures(Record):
    """One measure on one split; None if a figure is undefined or too large for a float."""

    perplexity_per_token: float | None
    perplexity_per_word: float | None
    bits_per_byte: float | None
    intervals: dict[str, dict[str, float | None]] = Field(default={})  # figure → low and high; none from one document


class SplitPerplexity(Record):
    """All measures on one split."""

    SPREAD: ClassVar[str] = "measures"
    measures: dict[str, PerplexityFigures]  # masked and pseudo, or causal; then unigram
    beats_unigram: bool | None  # None if it has the lower perplexity on fewer than two scored documents
    flags: Flags


class PerplexityReport(Record):
    """perplexity-details.json."""

    SPREAD: ClassVar[str] = "splits"
    splits: dict[str, SplitPerplexity]

    @property
    def headlines(self) -> "Perplexities":
        """The part that goes into perplexity.json."""
        return Perplexities(
            splits={part: {name: figures.perplexity_per_token for name, figures in split.measures.items()}
                    for part, split in self.splits.items()},
            flags={part: dict.fromkeys(split.flags, 1) for part, split in self.splits.items() if split.flags},
        )  # fmt: skip


class Perplexities(Record):
    """perplexity.json: perplexities per token, by split and measure, with six digits."""

    SPREAD: ClassVar[str] = "splits"
    splits: dict[str, dict[str, float | None]]
    flags: dict[str, dict[str, int]] = Field(default={})  # split → flag → 1


@dataclass(frozen=True)
class Sizes:
    """Ordinary tokens, words and UTF-8 bytes of documents, (D,) each.

    Ordinary tokens exclude those that begin and end a document, and the unknown token, which no model has to predict;
    what it stands for is left out of words and bytes too. Words are separated by white space, which counts as bytes.
    """

    tokens: np.ndarray
    words: np.ndarray
    bytes: np.ndarray


@dataclass(frozen=True)
class Losses:
    """A model's losses on documents, in nats."""

    mean: float  # per scored token; NaN if there are none
    sums: np.ndarray  # (D,), over the scored tokens of each document
    scored: np.ndarray  # (D,), the number of scored tokens

    @property
    def documents(self) -> int:
        """How many documents have a scored token; intervals are over these."""
        return int((self.scored > 0).sum())


Measured = tuple[Losses, Sizes]  # of the same documents


def figures_of(losses: Losses, sizes: Sizes, drawn: Figures | None = None) -> PerplexityFigures:
    """Perplexity per token and per word, and bits per byte, with intervals where there are resamples, `drawn`, in nats.

    Per word and per byte, the loss of the whole text is divided by its number of words or bytes, as in EleutherAI's
    lm-evaluation-harness. The loss of the text is the mean over scored tokens times the number of ordinary tokens: a
    masked model is scored on some of the tokens, and the others are assumed to have the same mean loss. Percentile
    intervals are taken in nats and then converted.
    """
    nats = _in_nats(losses.mean, *(float(size.sum()) for size in (sizes.tokens, sizes.words, sizes.bytes)))
    intervals = {}
    for name, resampled_nats in (drawn or {}).items():
        found = percentile_interval(nats[name], resampled_nats, losses.documents)
        ends = clipped(nats[name], found, (0.0, math.inf))
        intervals[name] = {end: as_figure(name, at) for end, at in ends.items()}
    return PerplexityFigures(**{name: as_figure(name, loss) for name, loss in nats.items()}, intervals=intervals)


def as_figure(name: str, nats: float) -> float | None:
    """A loss in nats as a figure; None if no token was scored, or if the figure is too large for a float.

    A word of a text without spaces may cost more than 709 nats, and exp(710) is too large for a float.
    """
    if math.isfinite(nats):
        with suppress(OverflowError):
            return float(nats / math.log(2) if name == "bits_per_byte" else math.exp(nats))
    return None


def resampled(losses: Losses, sizes: Sizes) -> Resampled:
    """The loss per token, word and byte, in nats, for weights of documents (R, D); NaN without a scored token."""
    columns = np.stack([losses.sums, losses.scored, sizes.tokens, sizes.words, sizes.bytes], axis=1)  # (D, 5)

    def figures(weights: np.ndarray) -> Figures:
        sums, scored, *whole = (weights @ columns).T
        with np.errstate(invalid="ignore"):
            return _in_nats(sums / scored, *whole)

    return figures


def with_intervals(
    measured: Mapping[str, Measured], unigram: Measured, resamples: int, seed: int, unknown: float = 0.0
) -> SplitPerplexity:
    """Every measure's figures, and whether the first measure beats the unigram model by the interval.

    Both are scored on the same documents, so they share the resamples, and the difference is paired. With fewer
    than two scored documents their variation is unknown, and there are no intervals; a model is then flagged if its
    loss is not the lower one. A text without a scored token has a flag instead of figures. `unknown` is the share of
    the text's tokens that are not scored because they are not in the vocabulary; above MOST_UNKNOWN there is a flag.
    """
    every, measures, drawn = {**measured, "unigram": unigram}, {}, {}
    for name, (losses, sizes) in every.items():
        if losses.scored.any():
            drawn |= resample({name: resampled(losses, sizes)}, len(losses.sums), resamples, seed)
        measures[name] = figures_of(losses, sizes, drawn[name] if losses.documents > 1 else None)
    model, is_better, flags = next(iter(measured)), None, Flags()
    likelihoods = (-measured[model][0].mean, -unigram[0].mean)
    if not {model, "unigram"} <= drawn.keys():
        flags["nothing_scored"] = "no token of the text can be scored"
    elif measures[model].intervals and measures["unigram"].intervals:
        differences = drawn["unigram"]["perplexity_per_token"] - drawn[model]["perplexity_per_token"]
        documents = min(measured[model][0].documents, unigram[0].documents)
        interval = centred_interval(likelihoods[0] - likelihoods[1], differences, documents)
        flags = flag_unless_better(LIKELIHOOD, "unigram", *likelihoods, interval)
        is_better = not flags
    elif likelihoods[0] <= likelihoods[1]:
        means = "log likelihood per token {:.5g}, unigram {:.5g}".format(*likelihoods)
        is_better, flags["not_above_unigram"] = False, f"{means}; fewer than two documents are scored"
    if unknown > MOST_UNKNOWN:
        flags[UNKNOWN_TOKENS] = f"{100 * unknown:.1f}% of the text’s tokens are unknown and not scored"
    return SplitPerplexity(measures=measures, beats_unigram=is_better, flags=flags)


def unigram_losses(
    train: np.ndarray, held_out: np.ndarray, lengths: np.ndarray, vocabulary: int, special: tuple[int, ...]
) -> Losses:
    """The losses of held-out documents under the token frequencies of the training text, with add-one smoothing.

    `held_out` is a stream of documents of `lengths` (D,). Special tokens are left out of both, as in the masked loss.
    """
    seen = _counts(train, vocabulary, special)
    losses = -np.log((seen + 1) / (seen.sum() + vocabulary - len(special)))  # (V,)
    ordinary = np.ones(vocabulary)
    losses[list(special)] = ordinary[list(special)] = 0
    documents = [held_out[start:end] for start, end in pairwise([0, *np.cumsum(lengths)])]
    sums, scored = (np.array([per_token[document].sum() for document in documents]) for per_token in (losses, ordinary))
    return Losses(float(sums.sum() / scored.sum()) if scored.any() else math.nan, sums, scored)


def write_documents(splits: Mapping[str, Mapping[str, Measured]]) -> None:
    """Write one row per split, measure and document: loss in nats, scored tokens, and the document's sizes."""
    import pandas as pd  # here, as commands that read only the figures need not wait for it

    rows = [
        pd.DataFrame({"split": split, "measure": name, "loss": losses.sums, "scored": losses.scored, **asdict(sizes)})
        for split, measured in splits.items()
        for name, (losses, sizes) in measured.items()
    ]
    with atomic_file(DOCUMENTS) as path:
        pd.concat(rows).to_parquet(path, index=False)


def read_documents(content: bytes) -> dict[tuple[str, str], Measured]:
    """Read what `write_documents` wrote, by split and measure."""
    import pandas as pd  # here, for the same reason

    found = {}
    for split, measures in pd.read_parquet(BytesIO(content)).groupby("split"):
        for name, rows in measures.groupby("measure"):
            sums, scored, *sizes = (rows[column].to_numpy() for column in COLUMNS)
            losses = Losses(sums.sum() / scored.sum() if scored.any() else math.nan, sums, scored)
            found[str(split), str(name)] = losses, Sizes(*sizes)
    return found


def are_same_documents(first: Measured, second: Measured) -> bool:
    """Whether both cover the same texts in the same tokens, judging by their sizes."""
    return all(map(np.array_equal, astuple(first[1]), astuple(second[1])))


def _in_nats(loss: Any, tokens: Any, words: Any, size: Any) -> dict[str, Any]:
    """The loss per token, word and byte, of one text or of R resamples."""
    with np.errstate(divide="ignore", invalid="ignore"):  # without a scored token
        return {"perplexity_per_token": loss, "perplexity_per_word": np.divide(loss * tokens, words),
                "bits_per_byte": np.divide(loss * tokens, size)}  # fmt: skip


def _counts(stream: np.ndarray, vocabulary: int, special: tuple[int, ...]) -> np.ndarray:
    counts = np.zeros(vocabulary, dtype=np.int64)
    for part in np.array_split(stream, 1 + len(stream) // CHUNK):
        counts += np.bincount(part, minlength=vocabulary)
    counts[list(special)] = 0
    return counts
