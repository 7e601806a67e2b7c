"""Everything that the official SQuAD v2.0 script prints (Rajpurkar et al. 2018, "Know What You Don't Know").

An answer is compared with each gold answer, and the best match counts. Both are lower-cased, and punctuation and the
articles a, an and the are removed. HasAns_ figures are over answerable questions, NoAns_ figures over the others. best_
figures are those at the best threshold above which a model abstains. As in the script's `find_best_thresh`, it is found
on the same questions that are scored: starting without any answer, questions are answered one at a time, the most
confident first, and each changes the sum of the scores by its gain.
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from scipy.sparse import csr_array

from retrace.evaluation.outcomes import Answered
from retrace.evaluation.records import Columns
from retrace.statistics.intervals import Figures, Resampled, Share, mean_of, whole_shares
from retrace.statistics.scales import Figure, Legend

CITATION = "Rajpurkar, Jia and Liang 2018: Know What You Don't Know: Unanswerable Questions for SQuAD. ACL."
FIGURES: Legend = {}
for _prefix, _of in ("", ""), ("HasAns_", " of answerable questions"), ("NoAns_", " of unanswerable questions"):
    FIGURES[f"{_prefix}exact_match"] = Figure("percentage", "higher", f"exact match{_of}")
    FIGURES[f"{_prefix}f1"] = Figure("percentage", "higher", f"F1{_of}")
    FIGURES[f"{_prefix}total"] = Figure("count", "neither", f"number{_of or ' of questions'}")
for _name, _called in ("exact_match", "exact match"), ("f1", "F1"):
    FIGURES[f"best_{_name}"] = Figure("percentage", "higher", f"{_called} at its best threshold")
    FIGURES[f"best_{_name}_thresh"] = Figure("score", "neither", f"best threshold for {_called}")

POINTS = 61  # of the curve by threshold, besides its ends and 0
_ARTICLES = re.compile(r"\b(a|an|the)\b", re.UNICODE)
_PUNCTUATION = set(string.punctuation)


def score(outcome: Answered) -> dict[str, float]:
    """Percentages, and `total`, the number of questions.

    HasAns_ and NoAns_ figures are present where there are questions of that kind, best_ ones where
    `no_answer` is given; their thresholds are on its scale. Without questions there is no figure.
    """
    values = decided(outcome)
    figures: dict[str, float] = {}
    for prefix, among in _kinds(outcome).items():
        figures |= {prefix + name: 100.0 * float(column[among].mean()) for name, column in values.items()}
        figures[f"{prefix}total"] = int(among.sum())
    if outcome.no_answer is not None:
        for name, gains in _gains(outcome).items():
            best, threshold = best_threshold(outcome.no_answer, gains, int((~outcome.answerable).sum()))
            figures |= {f"best_{name}": 100.0 * best / len(outcome), f"best_{name}_thresh": threshold}
    return figures


def resampled(outcome: Answered) -> Resampled:
    """The percentages for weights of questions; the best threshold is found anew in each resample."""
    values = {name: 100.0 * column for name, column in decided(outcome).items()}
    means = {prefix: mean_of(values, among) for prefix, among in _kinds(outcome).items()}
    best = {}
    if outcome.no_answer is not None:
        best = {name: _resampled_best(outcome.no_answer, gains) for name, gains in _gains(outcome).items()}
    unanswerable = (~outcome.answerable).astype(np.float64)

    def figures(weights: np.ndarray) -> Figures:
        found = {prefix + name: value for prefix, mean in means.items() for name, value in mean(weights).items()}
        abstaining, total, columns = weights @ unanswerable, weights.sum(axis=1), np.ascontiguousarray(weights.T)
        for name, gained in best.items():
            found[f"best_{name}"] = 100.0 * (abstaining + gained(columns)) / total
        return found

    return figures


def shares(outcome: Answered) -> dict[str, Share]:
    """Exact match, of all questions and of each kind, and F1 if it is 0 or 1 for every answer."""
    values = decided(outcome)
    return {
        prefix + name: share
        for prefix, among in _kinds(outcome).items()
        for name, share in whole_shares(values, among).items()
    }


def examples(outcome: Answered) -> dict[str, int]:
    """The number of questions, for figures that unanswerable questions count in too."""
    return dict.fromkeys(("exact_match", "f1", "best_exact_match", "best_f1"), len(outcome))


def best_threshold(no_answer: np.ndarray, gains: np.ndarray, abstaining: float) -> tuple[float, float]:
    """The largest sum of scores, and its threshold: the `no_answer` of the last question answered, 0 if none is.

    `no_answer` and `gains` are (N,), `abstaining` is the sum if no question is answered. Questions with equal
    `no_answer` are answered one at a time too, in their order.
    """
    order = np.argsort(no_answer, kind="stable")
    running = np.cumsum([abstaining, *gains[order]])
    best = int(running.argmax())
    return float(running[best]), float(no_answer[order[best - 1]]) if best else 0.0


def threshold_curve(outcomes: Sequence[Answered]) -> Columns:
    """The scores by the threshold of `no_answer` above which a model abstains, from always to never.

    Means over seeds. The thresholds are both ends, the default 0, and `POINTS` from the 1% to the 99% quantile of the
    first seed. Empty for models that never abstain.
    """
    by_seed = [outcome.no_answer for outcome in outcomes if outcome.no_answer is not None]
    if not by_seed:
        return {}
    every = np.concatenate(by_seed)
    within = np.linspace(np.quantile(by_seed[0], 0.01), np.quantile(by_seed[0], 0.99), POINTS)
    thresholds = np.unique([np.nextafter(every.min(), -np.inf), *within, 0.0, every.max()])
    curves: dict[str, list[np.ndarray]] = {"exact_match": [], "f1": []}
    for outcome, no_answer in zip(outcomes, by_seed, strict=True):
        answers, abstaining = no_answer[:, None] <= thresholds, ~outcome.answerable  # (N, thresholds), (N,)
        for name, column in _compared(outcome.golds, outcome.spans or ()).items():
            curves[name].append(100.0 * (abstaining.sum() + (column - abstaining) @ answers) / len(outcome))
    means = {name: np.mean(seeds, axis=0).tolist() for name, seeds in curves.items()}
    return {"threshold": thresholds.tolist()} | means


def _resampled_best(no_answer: np.ndarray, gains: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """By how much the largest sum exceeds that of always abstaining, for weights of questions: (N, R) → (R,), float64.

    A sum can only be the largest where gains end and losses begin, so questions are summed between these places first.
    """
    order = np.argsort(no_answer, kind="stable")
    order = order[gains[order] != 0]
    ends = np.diff(np.sign(gains[order]), append=-1.0) < 0
    stretch = np.cumsum(ends) - ends  # of each question; losses at the end are in none
    count = int(ends.sum())
    order, stretch = order[stretch < count], stretch[stretch < count]
    sums = csr_array((gains[order], (stretch, order)), shape=(count, len(gains)))

    def best(weights: np.ndarray) -> np.ndarray:
        return np.cumsum(sums @ weights, axis=0).max(axis=0, initial=0.0)

    return best


@lru_cache(1 << 18)
def compare(golds: tuple[str, ...], answer: str) -> tuple[int, float]:
    """Exact match, 0 or 1, and F1 of words, 0 to 1, each with the right answer that gives the most.

    Right answers that are empty after normalising do not count; where no other is left, "" is right.
    """
    given = normalised(answer)
    right = [text for text in map(normalised, golds) if text] or [""]
    return max(int(text == given) for text in right), max(_f1(text.split(), given.split()) for text in right)


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


def _compared(golds: Sequence[tuple[str, ...]], answers: Sequence[str]) -> dict[str, np.ndarray]:
    """Exact match and F1 of each question, (N,), 0 to 1."""
    rows = [compare(tuple(dict.fromkeys(right)), answer) for right, answer in zip(golds, answers, strict=True)]
    exact, f1 = np.array(rows, dtype=np.float64).reshape(-1, 2).T
    return {"exact_match": exact, "f1": f1}


def decided(outcome: Answered) -> dict[str, np.ndarray]:
    """Exact match and F1, (N,), with abstentions: as in the script, these are wrong for every answerable question."""
    values = _compared(outcome.golds, outcome.answers)
    if outcome.abstained is None:
        return values
    return {name: np.where(outcome.abstained, ~outcome.answerable, column) for name, column in values.items()}


def _kinds(outcome: Answered) -> dict[str, np.ndarray]:
    """Prefix → which questions, (N,); only kinds that occur."""
    has = outcome.answerable
    kinds = {"": np.ones_like(has), "HasAns_": has, "NoAns_": ~has}
    return {prefix: among for prefix, among in kinds.items() if among.any()}


def _gains(outcome: Answered) -> dict[str, np.ndarray]:
    """The gain from answering each question rather than abstaining, (N,).

    As in the script any text costs a point where there is no answer, even if it is empty after normalising.
    """
    spans = outcome.spans or ()
    spoils = np.array([-float(span != "") for span in spans])
    values = _compared(outcome.golds, spans)
    return {name: np.where(outcome.answerable, column, spoils) for name, column in values.items()}
