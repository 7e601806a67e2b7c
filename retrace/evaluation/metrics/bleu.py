"""Corpus BLEU (Papineni et al. 2002) of all answers, with the gold answers as references, by sacrebleu.

Only answerable questions count. The settings are sacrebleu's defaults: words by mteval's 13a tokenizer, case-sensitive,
n-grams of one to four words, exponential smoothing (orders without a match count as 1/2, 1/4 and so on). BLEU and its
precisions are percentages. Lengths are in words; the reference length is that of the closest reference.

`bleu_sentence` is the mean of each answer's own BLEU, as nltk's sentence_bleu computes it by default, on the same
words and without smoothing: if no n-gram of some length matches, or the answer is too short to have one, its precision
is the smallest float, 2.2e-308. So an answer of three words or fewer scores about 0 even if it is right.
"""

import sys
from functools import lru_cache
from itertools import zip_longest

import numpy as np
from sacrebleu.metrics.bleu import BLEU, MAX_NGRAM_ORDER

from retrace.evaluation.outcomes import Answered
from retrace.statistics.intervals import Figures, Resampled, mean_of
from retrace.statistics.scales import Figure

CITATION = (
    "Papineni et al. 2002: BLEU: a Method for Automatic Evaluation of Machine Translation. ACL; "
    "Post 2018: A Call for Clarity in Reporting BLEU Scores. WMT."
)
PRECISIONS = tuple(f"bleu_precision_{n}" for n in range(1, MAX_NGRAM_ORDER + 1))
FIGURES = {
    "bleu": Figure("percentage", "higher", "BLEU"),
    **{name: Figure("percentage", "higher", f"BLEU precision {n}") for n, name in enumerate(PRECISIONS, 1)},
    "bleu_brevity_penalty": Figure("fraction", "neither", "BLEU brevity penalty"),  # 1 for any answers long enough
    "bleu_length_ratio": Figure("ratio", "neither", "BLEU length ratio"),
    "bleu_length": Figure("count", "neither", "BLEU length"),
    "bleu_reference_length": Figure("count", "neither", "BLEU reference length"),
    "bleu_sentence": Figure("percentage", "higher", "BLEU by sentence"),
}
SMALLEST = sys.float_info.min  # in place of a precision of 0

_BLEU = BLEU(effective_order=True)  # for counts of single answers, which the effective order does not change


def score(outcome: Answered) -> dict[str, float]:
    """The figures of all answerable questions together; empty if there are none."""
    if not outcome.answerable.any():
        return {}
    every_count = _counts(outcome)
    length, reference, *counts = every_count.sum(axis=0).tolist()
    matching, every = counts[:MAX_NGRAM_ORDER], counts[MAX_NGRAM_ORDER:]
    found = BLEU.compute_bleu(matching, every, length, reference, smooth_method=_BLEU.smooth_method)
    return {
        "bleu": min(100.0, found.score),  # rounding may exceed 100
        **dict(zip(PRECISIONS, found.precisions, strict=True)),
        "bleu_brevity_penalty": found.bp,
        "bleu_length_ratio": found.ratio,
        "bleu_length": length,
        "bleu_reference_length": reference,
        "bleu_sentence": float(_sentences(every_count)[outcome.answerable].mean()),
    }


def notes(outcome: Answered) -> dict[str, str]:
    """sacrebleu's signature, which says what was computed and with which version."""
    golds = [golds for golds in outcome.golds if golds]
    if not golds:
        return {}
    bleu = BLEU(references=list(zip_longest(*golds)))  # the signature tells how many right answers there are
    return {"bleu_signature": str(bleu.get_signature())}


def resampled(outcome: Answered) -> Resampled:
    """The figures except lengths, for weights of questions; NaN in a resample without an answerable one."""
    if not outcome.answerable.any():
        return lambda weights: {}
    counts = _counts(outcome).astype(np.float64)
    answerable = outcome.answerable.astype(np.float64)
    sentences = mean_of({"bleu_sentence": _sentences(counts)}, outcome.answerable)

    def figures(weights: np.ndarray) -> Figures:
        is_known = weights @ answerable > 0
        together = {name: np.where(is_known, values, np.nan) for name, values in _figures(weights @ counts).items()}
        return together | sentences(weights)

    return figures


def _counts(outcome: Answered) -> np.ndarray:
    """(N, 2 + 2 orders), 0 for a question without an answer."""
    none = (0,) * (2 + 2 * MAX_NGRAM_ORDER)
    rows = zip(outcome.answers, outcome.golds, strict=True)
    return np.array([_one_answer(answer, golds) if golds else none for answer, golds in rows])


@lru_cache(1 << 18)
def _one_answer(answer: str, golds: tuple[str, ...]) -> tuple[int, ...]:
    """Words, words of the closest right answer, matching n-grams and all n-grams by order."""
    found = _BLEU.sentence_score(answer, list(dict.fromkeys(golds)))
    return found.sys_len, found.ref_len, *found.counts, *found.totals


def _sentences(counts: np.ndarray) -> np.ndarray:
    """Counts of answers, (N, 2 + 2 orders) → nltk's sentence_bleu of each, (N,), percentages."""
    length, reference = counts[:, 0], counts[:, 1]
    matching, every = np.split(counts[:, 2:], 2, axis=1)  # (N, orders)
    precisions = np.where(matching > 0, matching / np.maximum(every, 1), SMALLEST)
    penalty = np.exp(np.minimum(0, 1 - reference / np.maximum(length, 1)))
    return np.where(matching[:, 0] > 0, 100.0 * penalty * np.exp(np.log(precisions).mean(axis=1)), 0.0)


def _figures(sums: np.ndarray) -> Figures:
    """Sums of counts, (R, 2 + 2 orders) → sacrebleu's figures of each row."""
    length, reference = sums[:, 0], sums[:, 1]
    matching, every = np.split(sums[:, 2:], 2, axis=1)  # (R, orders)
    with np.errstate(divide="ignore", invalid="ignore"):
        penalty = np.where(length < reference, np.exp(1 - reference / length), 1.0)
        smoothed = 0.5 ** np.cumsum(matching == 0, axis=1)
        precisions = 100.0 * np.where(matching == 0, smoothed, matching) / every
        precisions = np.where((every > 0) & matching.any(axis=1, keepdims=True), precisions, 0.0)
        bleu = penalty * np.exp(np.log(precisions).mean(axis=1))
        ratio = np.where(reference > 0, length / reference, 0.0)
    return {
        "bleu": bleu,
        **dict(zip(PRECISIONS, precisions.T, strict=True)),
        "bleu_brevity_penalty": penalty,
        "bleu_length_ratio": ratio,
    }
