"""Do two methods differ, and which is better? On the same examples, corrected for how many pairs there are.

A method is more than one model: trained from another seed it gives another figure. So there are two levels of
chance, examples and seeds. From one seed of either method the second is unknown: what is compared then is
these two models, and no method is called better.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri
from scipy.stats import binomtest

from retrace.core.files import rounded
from retrace.statistics.intervals import Figures, Share, student
from retrace.statistics.scales import Better, Comparison, Flags, Interval

ALPHA = 0.05
ROUNDING = 1e-12  # of a figure: a smaller difference is none
SMALLEST_P = 1e-15  # of what is not worked out further
POWER_Z = 0.8416212335729143  # of the normal distribution at a power of 80%
TIE, DIFFER = "tie", "they differ"  # of methods; the latter where the figure is neither better high nor low
MODELS_TIE, MODELS_DIFFER = "no difference shown", "models differ"  # where one of them is of one seed


@dataclass(frozen=True)
class Candidate:
    """A method's figures: of each seed, resampled, and as a share of examples where a figure is one."""

    figures: Sequence[Mapping[str, float]]
    drawn: Sequence[Figures]
    shares: Sequence[Mapping[str, Share]] = field(default_factory=list)
    examples: int = 0  # that decide of a figure which is no share; 0 where that is not known

    def asked(self, figure: str) -> int:
        """How many examples decide of a figure."""
        found = [int(of[figure].asked.sum()) for of in self.shares if figure in of]
        return min(found) if found else self.examples


@dataclass(frozen=True)
class Difference:
    """The first's mean over seeds less the second's, and its standard errors by their cause."""

    value: float
    of_examples: float
    of_seeds: float = 0.0  # 0 where either is of one seed, so that nothing is known of it
    freedom: float = math.inf  # degrees of the latter
    is_of_models: bool = False  # and not of methods: either is of one seed

    def reach(self, p: float = ALPHA) -> float:
        """Half the width of the interval of level 1 - p: both causes, each by its distribution, in squares (MOVER)."""
        seeds = student(self.freedom, p) * self.of_seeds if self.of_seeds else 0.0
        return math.hypot(float(ndtri(p / 2)) * self.of_examples, seeds)

    @property
    def interval(self) -> Interval:
        """95%."""
        return {"low": self.value - self.reach(), "high": self.value + self.reach()}

    @property
    def p(self) -> float:
        """Two-sided, of no difference: the interval of level 1 - p ends at 0, so that the two agree."""
        if self.value == 0:
            return 1.0

        def beyond(log_p: float) -> float:
            return self.reach(math.exp(log_p)) - abs(self.value)

        smallest = math.log(SMALLEST_P)
        return SMALLEST_P if beyond(smallest) < 0 else math.exp(_root(beyond, smallest, 0.0))

    @property
    def detectable(self) -> float:
        """The true difference that a two-sided test at 5% finds in 80% of cases."""
        return self.reach() + POWER_Z * math.hypot(self.of_examples, self.of_seeds)


def compare(candidates: Mapping[str, Candidate], better: Mapping[str, Better]) -> list[Comparison]:
    """Every pair of methods by every figure that they have; `better` says which way each is."""
    names = list(dict.fromkeys(name for c in candidates.values() for name in c.drawn[0]))
    found: list[Comparison] = []
    for figure in names:
        pairs = [
            _compare(figure, first, second, candidates)
            for first, second in combinations(candidates, 2)
            if all(figure in candidates[name].drawn[0] for name in (first, second))
        ]
        corrected = holm([comparison.p for comparison, _ in pairs])
        found += [
            replace(comparison, p_corrected=p, verdict=_verdict(comparison, is_of_models, p < ALPHA, better))
            for (comparison, is_of_models), p in zip(pairs, corrected, strict=True)
        ]
    return found


def difference(figure: str, first: Candidate, second: Candidate, are_alike: bool = False) -> Difference:
    """By one figure that both have.

    `are_alike` takes the seeds of both to lie equally far apart (Student's t for two samples) where Welch's, by
    which a method is named, does not: of two seeds each its interval is often half as wide.
    """
    sides = [np.array([figures[figure] for figures in side.figures]) for side in (first, second)]
    drawn = [np.mean([figures[figure] for figures in side.drawn], axis=0) for side in (first, second)]
    value = float(sides[0].mean() - sides[1].mean())
    if abs(value) < ROUNDING * max(1.0, *(abs(side.mean()) for side in sides)):
        value = 0.0
    of_examples = float(np.nanstd(drawn[0] - drawn[1], ddof=1))  # a figure may not be defined in some resample
    # Of few examples that all say the same the bootstrap thinks itself sure: at least as much chance as if each
    # differed from the others by the difference.
    asked = min(first.asked(figure), second.asked(figure))
    of_examples = max(of_examples, abs(value) / math.sqrt(asked)) if asked else of_examples
    if min(map(len, sides)) < 2:
        return Difference(value, of_examples, is_of_models=True)
    variances = [side.var(ddof=1) / len(side) for side in sides]
    whole = float(sum(variances))
    if whole == 0:
        return Difference(value, of_examples)
    seeds = [len(side) - 1 for side in sides]
    welch = whole**2 / sum(part**2 / free for part, free in zip(variances, seeds, strict=True))  # Welch 1947
    freedom = sum(seeds) if are_alike else welch
    return Difference(value, of_examples, math.sqrt(whole), float(freedom))


def mcnemar(first: np.ndarray, second: np.ndarray) -> float:
    """Exact McNemar test (1947; binomial): p of no difference in how often two models are right, (N,) each."""
    only_first, only_second = int((first & ~second).sum()), int((~first & second).sum())
    if only_first + only_second == 0:
        return 1.0
    return float(binomtest(only_first, only_first + only_second).pvalue)


def holm(values: Sequence[float]) -> list[float]:
    """Holm's correction (1979) of several p values, in their order."""
    corrected, worst = [0.0] * len(values), 0.0
    for rank, place in enumerate(np.argsort(values, kind="stable")):
        worst = max(worst, min(1.0, (len(values) - rank) * values[place]))
        corrected[place] = worst
    return corrected


def _compare(figure: str, first: str, second: str, candidates: Mapping[str, Candidate]) -> tuple[Comparison, bool]:
    """The comparison before it is corrected, and whether it is of models alone."""
    pair = [candidates[name] for name in (first, second)]
    found = difference(figure, pair[0], pair[1])
    shares = [share for side in pair for of in side.shares if (share := of.get(figure)) is not None]
    # Answers of several seeds to one question are not independent, as McNemar's test has them.
    if [len(side.figures) for side in pair] == [1, 1] and len(shares) == 2 and _are_of_the_same(*shares):
        test, p = "exact McNemar", mcnemar(shares[0].hits, shares[1].hits)
    else:
        test, p = "paired bootstrap" if found.is_of_models else "examples and seeds", found.p
    comparison = Comparison(
        figure, first, second, found.value, **found.interval, test=test, p=p, p_corrected=p, verdict=TIE,
        detectable=found.detectable,
    )  # fmt: skip
    return comparison, found.is_of_models


def _are_of_the_same(first: Share, second: Share) -> bool:
    return np.array_equal(first.asked, second.asked)


def _verdict(pair: Comparison, is_of_models: bool, is_shown: bool, better: Mapping[str, Better]) -> str:
    if is_of_models:
        return MODELS_DIFFER if is_shown else MODELS_TIE
    if not is_shown:
        return TIE
    if better[pair.figure] == "neither":
        return DIFFER
    return pair.first if (pair.difference > 0) == (better[pair.figure] == "higher") else pair.second


def _root(of: Callable[[float], float], low: float, high: float) -> float:
    return float(brentq(of, low, high, xtol=1e-13))  # pyright: ignore[reportArgumentType]


def not_above(
    figure: str, name: str, value: float, other: float, interval: Interval, better: Better = "higher", note: str = ""
) -> Flags:
    """Not better than something else, by the 95% interval of the difference; `note` is added to the evidence."""
    if interval["low"] > 0 if better == "higher" else interval["high"] < 0:
        return {}
    low, high = (_shown(interval[end], 3) for end in ("low", "high"))
    evidence = (
        f"{figure} {_shown(value, 4)}, {name.replace('_', ' ')} {_shown(other, 4)}; "
        f"difference {_shown(value - other, 3)} (95% interval {low} to {high})"
    )
    return {f"not_above_{name}": f"{evidence} {note}".strip()}


def _shown(value: float, digits: int) -> str:
    """With so many significant digits, the same whatever the last that floating point holds."""
    return f"{rounded(value):.{digits}g}"
