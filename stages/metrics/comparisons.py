"""Is one method better than another? Paired tests on the same examples, corrected for how many there are."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from scipy.stats import binomtest

from stages.metrics.intervals import Z, percentile_interval, seeds_resampled
from stages.metrics.resampling import Figures

ALPHA = 0.05
POWER_Z = 0.8416212335729143  # of the normal distribution at a power of 80%
TIE = "tie"


@dataclass(frozen=True)
class Candidate:
    """A method's figures: of each seed, resampled, and which examples it got right for each figure that is a share."""

    figures: Sequence[Mapping[str, float]]
    drawn: Sequence[Figures]
    right: Sequence[Mapping[str, np.ndarray]]


@dataclass(frozen=True)
class Comparison:
    """Two methods by one figure; the difference is the first's less the second's."""

    figure: str
    first: str
    second: str
    difference: float
    low: float  # 95% interval of the difference
    high: float
    test: str
    p: float  # of no difference, two-sided, before and
    p_corrected: float  # after Holm's correction for all pairs of this figure
    verdict: str  # the better method, or a tie
    detectable: float  # the smallest difference that this data shows with a power of 80%


def compare(candidates: Mapping[str, Candidate], seed: int) -> list[dict[str, Any]]:
    """Every pair of methods by every figure that they have."""
    names = list(dict.fromkeys(name for c in candidates.values() for name in c.drawn[0]))
    found: list[Comparison] = []
    for figure in names:
        pairs = [
            _compare(figure, first, second, candidates, seed)
            for first, second in combinations(candidates, 2)
            if all(figure in candidates[name].drawn[0] for name in (first, second))
        ]
        found += [_judged(pair, p) for pair, p in zip(pairs, holm([pair.p for pair in pairs]), strict=True)]
    return [asdict(comparison) for comparison in found]


def mcnemar(first: np.ndarray, second: np.ndarray) -> float:
    """Exact McNemar test (1947; binomial): p of no difference in how often two methods are right, (N,) each."""
    only_first, only_second = int((first & ~second).sum()), int((~first & second).sum())
    if only_first + only_second == 0:
        return 1.0
    return float(binomtest(only_first, only_first + only_second).pvalue)


def bootstrap_p(differences: np.ndarray) -> float:
    """Two-sided p of no difference from resampled differences (R,), never 0 (Davison and Hinkley 1997, section 4.2)."""
    below, above = (differences <= 0).sum(), (differences >= 0).sum()
    return float(min(1.0, 2 * (1 + min(below, above)) / (1 + len(differences))))


def holm(values: Sequence[float]) -> list[float]:
    """Holm's correction (1979) of several p values, in their order."""
    corrected, worst = [0.0] * len(values), 0.0
    for rank, place in enumerate(np.argsort(values, kind="stable")):
        worst = max(worst, min(1.0, (len(values) - rank) * values[place]))
        corrected[place] = worst
    return corrected


def detectable(differences: np.ndarray) -> float:
    """The true difference that a two-sided test at 5% finds in 80% of cases, from resampled differences (R,)."""
    return float((Z + POWER_Z) * differences.std(ddof=1))


def _compare(figure: str, first: str, second: str, candidates: Mapping[str, Candidate], seed: int) -> Comparison:
    pair = [candidates[name] for name in (first, second)]
    generator = np.random.default_rng(seed)
    left, right = (seeds_resampled([seed[figure] for seed in candidate.drawn], generator) for candidate in pair)
    means = [np.mean([figures[figure] for figures in candidate.figures]) for candidate in pair]
    differences = left - right
    differences = differences[np.isfinite(differences)]  # a figure may not be defined in some resample
    # Answers of several seeds to one question are not independent, as McNemar's test has them.
    exact = all(len(candidate.right) == 1 and figure in candidate.right[0] for candidate in pair)
    p = mcnemar(*(candidate.right[0][figure] for candidate in pair)) if exact else bootstrap_p(differences)
    return Comparison(
        figure, first, second, float(means[0] - means[1]), **percentile_interval(differences),
        test="exact McNemar" if exact else "paired bootstrap", p=p, p_corrected=p, verdict=TIE,
        detectable=detectable(differences),
    )  # fmt: skip


def _judged(pair: Comparison, p: float) -> Comparison:
    better = pair.first if pair.difference > 0 else pair.second
    return replace(pair, p_corrected=p, verdict=better if p < ALPHA else TIE)
