"""Paired comparisons of methods on the same examples, corrected for the number of pairs.

A method's figures vary from seed to seed. So a difference between methods has two sources of variation: examples and
seeds. If either method has only one seed, the variation over seeds is unknown: then two models are compared, and no
method is called better.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from scipy.special import ndtri

from retrace.statistics.intervals import ANYWHERE, Scored, clipped, student, unbiased
from retrace.statistics.scales import Better, Comparison, Flags, Interval, Legend, Shortfall

ALPHA = 0.05
ROUNDING = 1e-12  # relative; a smaller difference counts as 0
SMALLEST_P = 1e-15  # smaller ones are not computed
POWER = 0.8
TIE, DIFFER = "tie", "they differ"  # of methods; the latter if neither direction is better
MODELS_TIE, MODELS_DIFFER = "no difference shown", "models differ"  # where either method has one seed


@dataclass(frozen=True)
class Difference:
    """The difference of two means over seeds, and its standard errors over examples and over seeds."""

    value: float
    of_examples: float
    of_seeds: float = 0.0  # 0 if either has one seed
    freedom: float = math.inf  # degrees of freedom of `of_seeds`
    is_of_models: bool = False  # whether two models are compared, not methods, as either has one seed
    independent: int = 0  # examples, or clusters of them, behind `of_examples`; 0 if their number is not known
    ends: tuple[float, float] = ANYWHERE  # of the figure's scale

    def reach(self, p: float = ALPHA) -> float:
        """Half the width of the interval of level 1 - p, Student's t for examples and seeds, added in quadrature."""
        examples = student(self.independent - 1, p) if self.independent > 1 else -float(ndtri(p / 2))
        seeds = student(self.freedom, p) * self.of_seeds if self.of_seeds else 0.0
        return math.hypot(examples * self.of_examples, seeds)

    @property
    def interval(self) -> Interval:
        """The 95% interval, cut off at the largest difference that the scale allows."""
        low, high = self.ends
        found = {"low": self.value - self.reach(), "high": self.value + self.reach()}
        return clipped(self.value, found, (low - high, high - low))

    @property
    def p(self) -> float:
        """Two-sided p of no difference: the level 1 - p whose interval just reaches 0."""
        from scipy.optimize import brentq  # here, as it takes half a second to import

        if self.value == 0:
            return 1.0

        def beyond(log_p: float) -> float:
            return self.reach(math.exp(log_p)) - abs(self.value)

        smallest = math.log(SMALLEST_P)
        if beyond(smallest) < 0:
            return SMALLEST_P
        return math.exp(float(brentq(beyond, smallest, 0.0, xtol=1e-13)))  # pyright: ignore[reportArgumentType]

    def detectable(self, tests: int = 1) -> float | None:
        """The true difference that is found with a power of 80%, by two-sided tests at 5% in all (Bonferroni).

        None if it is larger than the scale.
        """
        found = self.reach(ALPHA / tests) + self.reach(2 * (1 - POWER))
        return found if found <= self.ends[1] - self.ends[0] else None


def compare(methods: Mapping[str, Sequence[Scored]], legend: Legend) -> list[Comparison]:
    """Compare every pair of methods, each with its seeds, by every figure that both have."""
    found: list[Comparison] = []
    for figure in dict.fromkeys(name for seeds in methods.values() for name in seeds[0].drawn):
        having = [name for name, seeds in methods.items() if figure in seeds[0].drawn]
        pairs = {(one, two): difference(figure, methods[one], methods[two]) for one, two in combinations(having, 2)}
        tests = [_test(figure, [*methods[one], *methods[two]], gap) for (one, two), gap in pairs.items()]
        corrected = holm([p for _, p in tests])
        for (pair, gap), (test, p), p_corrected in zip(pairs.items(), tests, corrected, strict=True):
            verdict = _verdict(*pair, gap, p_corrected < ALPHA, legend[figure].better)
            kind = "models" if gap.is_of_models else "methods"
            found.append(
                Comparison(figure, *pair, kind, gap.value, **gap.interval, test=test, p=p, p_corrected=p_corrected,
                           verdict=verdict, detectable=gap.detectable(len(pairs)))
            )  # fmt: skip
    return found


def difference(
    figure: str, first: Sequence[Scored], second: Sequence[Scored], are_alike: bool = False, are_paired: bool = False
) -> Difference:
    """The difference of two methods' means over their seeds, in one figure that both have.

    By default the variances over seeds may differ (Welch's t). `are_alike` assumes that they are equal (Student's t for
    two samples), which with two seeds each often halves the interval. `are_paired`: both have the same seeds in the
    same order (Student's t of pairs).
    """
    sides = [np.array([seed.figures[figure] for seed in side]) for side in (first, second)]
    drawn = [np.mean([seed.drawn[figure] for seed in side], axis=0) for side in (first, second)]
    value = float(sides[0].mean() - sides[1].mean())
    if abs(value) < ROUNDING * max(1.0, *(abs(side.mean()) for side in sides)):
        value = 0.0
    independent = min(seed.independent(figure) for seed in (*first, *second))
    spread = float(np.nanstd(drawn[0] - drawn[1], ddof=1))  # a figure may be NaN in some resamples
    of_examples = _error(figure, value, spread * unbiased(independent), first, second)
    ends = first[0].ends.get(figure, ANYWHERE)
    found = Difference(value, of_examples, is_of_models=min(map(len, sides)) < 2, independent=independent, ends=ends)
    if found.is_of_models:
        return found
    if are_paired:
        gaps = sides[0] - sides[1]
        return replace(found, of_seeds=float(gaps.std(ddof=1)) / math.sqrt(len(gaps)), freedom=len(gaps) - 1.0)
    free = np.array([len(side) - 1 for side in sides])
    variances = np.array([side.var(ddof=1) for side in sides])
    if are_alike:
        variances[:] = free @ variances / free.sum()  # pooled
    of_means = variances / (free + 1)
    whole = float(of_means.sum())
    if whole == 0:
        return found
    shares = of_means / of_means.max()  # the squares of variances may be too small for a float
    freedom = free.sum() if are_alike else shares.sum() ** 2 / (shares**2 / free).sum()  # Welch 1947
    return replace(found, of_seeds=math.sqrt(whole), freedom=float(freedom))


def mcnemar(first: np.ndarray, second: np.ndarray) -> float:
    """The p value of the exact (binomial) McNemar test (1947) of equal accuracy; arguments: which are right, (N,)."""
    from scipy.stats import binomtest  # here, as it takes half a second to import

    only_first, only_second = int((first & ~second).sum()), int((~first & second).sum())
    if only_first + only_second == 0:
        return 1.0
    return float(binomtest(only_first, only_first + only_second).pvalue)


def holm(values: Sequence[float]) -> list[float]:
    """Holm's correction (1979) of p values, in their order."""
    corrected, worst = [0.0] * len(values), 0.0
    for rank, place in enumerate(np.argsort(values, kind="stable")):
        worst = max(worst, min(1.0, (len(values) - rank) * values[place]))
        corrected[place] = worst
    return corrected


def _error(figure: str, value: float, spread: float, first: Sequence[Scored], second: Sequence[Scored]) -> float:
    """The standard error over examples of a difference whose resamples have this standard deviation.

    If the examples nearly agree, resamples hardly vary. In a macro mean, so may those of a class: the error is at least
    that of the classes, each as if all of its examples agreed.
    """
    examples = min(seed.examples_of(figure) for seed in (*first, *second))
    if not examples:
        return spread
    low, high = first[0].ends.get(figure, ANYWHERE)
    found = smoothed(value, spread, examples, high - low)
    if not all(figure in seed.by_class for seed in (*first, *second)):
        return found
    sides = [[seed.by_class[figure] for seed in side] for side in (first, second)]
    parts = [np.mean([share.values / share.classes for share in side], axis=0) for side in sides]
    fewest = np.min([share.examples for side in sides for share in side], axis=0)
    gaps = zip((parts[0] - parts[1]).tolist(), fewest.tolist(), strict=True)
    return max(found, math.hypot(*(smoothed(gap, 0.0, count, abs(gap)) for gap, count in gaps)))


def smoothed(value: float, spread: float, examples: float, width: float) -> float:
    """The standard error of a mean difference, with two examples added, half of each of four kinds: equal and good,
    equal and poor, and fully in favour of either side (Agresti and Min 2005, Statistics in Medicine 24).

    `spread` is the error without them, which is the least; `width` is that of the scale. If that is infinite, the added
    examples differ by as much as the mean.
    """  # fmt: skip
    added = width if math.isfinite(width) else abs(value)
    more = examples + 2
    squares = (examples * (examples * spread**2 + value**2) + added**2) / more
    return max(spread, math.sqrt((squares - (examples * value / more) ** 2) / more))


def _test(figure: str, seeds: Sequence[Scored], found: Difference) -> tuple[str, float]:
    """The test of a difference between models of two methods, and its p."""
    shares = [seed.shares[figure] for seed in seeds if figure in seed.shares]
    # McNemar's test needs independent decisions; those of several seeds on one example, or on one text, are not.
    is_independent = len(seeds) == len(shares) == 2 and seeds[0].clusters is None
    if is_independent and np.array_equal(shares[0].among, shares[1].among):
        return "exact McNemar", mcnemar(shares[0].hits, shares[1].hits)
    return "paired bootstrap" if found.is_of_models else "examples and seeds", found.p


def _verdict(first: str, second: str, found: Difference, is_shown: bool, better: Better) -> str:
    if found.is_of_models:
        return MODELS_DIFFER if is_shown else MODELS_TIE
    if not is_shown:
        return TIE
    if better == "neither":
        return DIFFER
    return first if (found.value > 0) == (better == "higher") else second


def flag_unless_better(
    figure: str, name: str, value: float, other: float, interval: Interval, better: Better = "higher", note: str = ""
) -> Flags:
    """A flag unless a figure beats another by the 95% interval of the difference; `note` goes into the evidence."""
    if interval["low"] > 0 if better == "higher" else interval["high"] < 0:
        return {}
    return {f"not_above_{name}": Shortfall(figure, value, name, other, interval["low"], interval["high"], note)}
