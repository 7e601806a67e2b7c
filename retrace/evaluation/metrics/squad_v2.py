"""The best threshold of a model that may abstain, as `find_best_thresh` of SQuAD's official script seeks it.

From abstaining always on, one question more is answered at a time, the surest first, and each
changes the sum of the scores by its gain.

Everything that the official SQuAD v2.0 script prints (Rajpurkar et al. 2018, "Know What You Don't Know").

An answer is compared with each right one and the best counts. Both are lower-cased, stripped of
punctuation and of the articles a, an and the. HasAns_ and NoAns_ figures are of the questions that
have an answer and those that have none. best_ figures are those of the best threshold, above which a
model abstains, found on the very questions that are scored.
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from scipy.sparse import csr_array

from retrace.evaluation.outcomes import Answered
from retrace.statistics.intervals import Figures, Resampled, Share, mean_of, whole_shares
from retrace.statistics.scales import Figure


def best_threshold(no_answer: np.ndarray, gains: np.ndarray, abstaining: float) -> tuple[float, float]:
    """The largest sum, and the `no_answer` of the last question answered for it, 0 where none is.

    `no_answer` and `gains` are (N,), `abstaining` is the sum where none is answered. Questions with equal
    `no_answer` are answered one at a time too, as they come.
    """
    order = np.argsort(no_answer, kind="stable")
    running = np.cumsum([abstaining, *gains[order]])
    best = int(running.argmax())
    return float(running[best]), float(no_answer[order[best - 1]]) if best else 0.0


def resampled_best(no_answer: np.ndarray, gains: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """How much the largest sum is above abstaining always, for weights of questions: (N, R) → (R,), float64.

    A sum can be largest only where gains end and losses begin, so one is kept for each such stretch.
    """
    order = np.argsort(no_answer, kind="stable")
    order = order[gains[order] != 0]
    ends = np.diff(np.sign(gains[order]), append=-1.0) < 0
    stretch = np.cumsum(ends) - ends  # what each question belongs to; the losses at the end to none
    count = int(ends.sum())
    order, stretch = order[stretch < count], stretch[stretch < count]
    sums = csr_array((gains[order], (stretch, order)), shape=(count, len(gains)))

    def best(weights: np.ndarray) -> np.ndarray:
        return np.cumsum(sums @ weights, axis=0).max(axis=0, initial=0.0)

    return best


CITATION = "Rajpurkar, Jia and Liang 2018: Know What You Don't Know: Unanswerable Questions for SQuAD. ACL."
_PERCENTAGE = Figure("percentage", "higher")
FIGURES = {
    f"{prefix}{name}": figure
    for prefix in ("", "HasAns_", "NoAns_")
    for name, figure in (("exact_match", _PERCENTAGE), ("f1", _PERCENTAGE), ("total", Figure("count", "neither")))
} | {
    "best_exact_match": _PERCENTAGE,
    "best_exact_match_thresh": Figure("score", "neither"),
    "best_f1": _PERCENTAGE,
    "best_f1_thresh": Figure("score", "neither"),
}

_ARTICLES = re.compile(r"\b(a|an|the)\b", re.UNICODE)
_PUNCTUATION = set(string.punctuation)


def score(outcome: Answered) -> dict[str, float]:
    """Percentages, and `total`, the number of questions.

    HasAns_ and NoAns_ figures are present where there are questions of that kind, best_ ones where
    `no_answer` is given; their thresholds are on its scale. No question, no figure.
    """
    if not outcome.answers:
        return {}
    values = compared(outcome.golds, outcome.answers)
    figures: dict[str, float] = {}
    for prefix, among in _kinds(outcome).items():
        figures |= {prefix + name: 100.0 * float(column[among].mean()) for name, column in values.items()}
        figures[f"{prefix}total"] = int(among.sum())
    return figures | _best(outcome)


def resampled(outcome: Answered) -> Resampled:
    """The percentages; the best threshold is sought anew in each resample."""
    values = {name: 100.0 * column for name, column in compared(outcome.golds, outcome.answers).items()}
    means = {prefix: mean_of(values, among) for prefix, among in _kinds(outcome).items()}
    best = _resampled_best(outcome)

    def figures(weights: np.ndarray) -> Figures:
        found = {prefix + name: value for prefix, of in means.items() for name, value in of(weights).items()}
        return found | best(weights)

    return figures


def shares(outcome: Answered) -> dict[str, Share]:
    """The exact matches, of all questions and of each kind, and F1 where each answer's is 0 or 1."""
    values = compared(outcome.golds, outcome.answers)
    found = {}
    for prefix, among in _kinds(outcome).items():
        found |= {prefix + name: share for name, share in whole_shares(values, among).items()}
    return found


def right_answers(golds: Sequence[str]) -> list[str]:
    """Those that are not empty after normalising; only "" where there is none."""
    return [text for text in golds if normalised(text)] or [""]


def exact_match(golds: Sequence[str], answer: str) -> int:
    """1 where the answer is one of the right ones after normalising, else 0."""
    return max(int(normalised(text) == normalised(answer)) for text in golds)


def overlap_f1(golds: Sequence[str], answer: str) -> float:
    """The best F1 of words in common with a right answer, 0 to 1."""
    return max(_f1(normalised(text).split(), normalised(answer).split()) for text in golds)


@lru_cache(1 << 18)
def normalised(text: str) -> str:
    """Lower case, without punctuation, articles and extra white space."""
    kept = "".join(character for character in text.lower() if character not in _PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", kept).split())


def _f1(gold: list[str], answer: list[str]) -> float:
    if not gold or not answer:
        return float(gold == answer)
    common = sum((Counter(gold) & Counter(answer)).values())
    if common == 0:
        return 0.0
    precision, recall = common / len(answer), common / len(gold)
    return 2 * precision * recall / (precision + recall)


@lru_cache(1 << 18)
def _one_answer(golds: tuple[str, ...], answer: str) -> tuple[int, float]:
    right = right_answers(tuple(dict.fromkeys(golds)))
    return exact_match(right, answer), overlap_f1(right, answer)


def compared(golds: Sequence[tuple[str, ...]], answers: Sequence[str]) -> dict[str, np.ndarray]:
    """Exact match and F1 of each question, (N,), 0 to 1."""
    rows = [_one_answer(right, answer) for right, answer in zip(golds, answers, strict=True)]
    exact, f1 = np.array(rows, dtype=np.float64).reshape(-1, 2).T
    return {"exact_match": exact, "f1": f1}


def _kinds(outcome: Answered) -> dict[str, np.ndarray]:
    """Prefix → which questions, (N,); only of kinds that occur."""
    has = outcome.answerable
    kinds = {"": np.ones_like(has), "HasAns_": has, "NoAns_": ~has}
    return {prefix: among for prefix, among in kinds.items() if among.any()}


def _gains(outcome: Answered) -> dict[str, np.ndarray]:
    """What answering a question gains over abstaining, (N,)."""
    spans = outcome.answers if outcome.spans is None else outcome.spans
    spoils = np.array([-float(span != "") for span in spans])
    return {
        name: np.where(outcome.answerable, values, spoils) for name, values in compared(outcome.golds, spans).items()
    }


def _best(outcome: Answered) -> dict[str, float]:
    if outcome.no_answer is None:
        return {}
    abstaining = int((~outcome.answerable).sum())
    figures: dict[str, float] = {}
    for name, gains in _gains(outcome).items():
        best, threshold = best_threshold(outcome.no_answer, gains, abstaining)
        figures[f"best_{name}"] = 100.0 * best / len(gains)
        figures[f"best_{name}_thresh"] = threshold
    return figures


def _resampled_best(outcome: Answered) -> Resampled:
    if outcome.no_answer is None:
        return lambda weights: {}
    unanswerable = (~outcome.answerable).astype(np.float64)
    best = {name: resampled_best(outcome.no_answer, gains) for name, gains in _gains(outcome).items()}

    def figures(weights: np.ndarray) -> Figures:
        abstaining, total = weights @ unanswerable, weights.sum(axis=1)
        columns = np.ascontiguousarray(weights.T)
        return {f"best_{name}": 100.0 * (abstaining + gained(columns)) / total for name, gained in best.items()}

    return figures
