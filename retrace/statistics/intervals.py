"""95% confidence intervals, and the bootstrap resamples behind them (Efron and Tibshirani 1993).

A resample of N examples is a row of weights: how often each example was drawn. A metric maps weights (R, N) to R
figures at once, mostly by matrix products.

Examples that share a text, such as the questions on a passage, are not independent. They form a cluster, and whole
clusters are drawn (Davison and Hinkley 1997, section 3.8).

Figures vary with the examples of the test set and with the seed. For examples the interval is Wilson's: that of a share
of them, or of as many as would give a share the figure's variance in resamples. For a mean over seeds, Student's
interval is added; half-widths add in quadrature (MOVER: Zou and Donner 2008, Statistics in Medicine 27). An interval
always contains its figure and stays within its scale.
"""

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.special import stdtrit

from retrace.statistics.scales import Interval

CHUNK = 1 << 18  # weights held at a time, to fit a processor's cache
LEVEL = 0.95
Z = 1.959963984540054  # the normal distribution's two-sided quantile at LEVEL
ANYWHERE = (-math.inf, math.inf)
ROUNDING = 1e-9  # of the scale; a narrower interval counts as one of width 0

Figures = dict[str, np.ndarray]  # name → (R,)
Resampled = Callable[[np.ndarray], Figures]  # weights (R, N) → a figure for each row of them
Ends = tuple[float, float]  # of a scale
Clusters = np.ndarray | None  # (N,), the number of each example's cluster, from 0; None if examples are independent


@dataclass(frozen=True)
class Share:
    """A figure that is a share of examples."""

    hits: np.ndarray  # (N,), bool, a subset of `among`
    among: np.ndarray  # (N,), bool

    @classmethod
    def among_all(cls, hits: np.ndarray) -> "Share":
        """A share of all examples."""
        return cls(hits, np.ones_like(hits, dtype=bool))

    @property
    def value(self) -> float:
        """0 to 1; 0 without examples."""
        return int(self.hits.sum()) / max(1, int(self.among.sum()))


@dataclass(frozen=True)
class ByClass:
    """The figures of the classes that a macro mean averages, fractions; a class without examples counts as 0."""

    values: np.ndarray  # (C,), of the classes that have examples
    examples: np.ndarray  # (C,), how many each is a share of
    classes: int  # in the mean, including those without examples


@dataclass(frozen=True)
class Scored:
    """One model's figures, and what their intervals are computed from."""

    figures: Mapping[str, float]
    drawn: Figures  # the figures in resamples
    shares: Mapping[str, Share] = field(default_factory=dict)  # of the figures that are shares of examples
    examples: Mapping[str, int] = field(default_factory=dict)  # the number behind each figure, where known
    by_class: Mapping[str, ByClass] = field(default_factory=dict)
    ends: Mapping[str, Ends] = field(default_factory=dict)  # of the figures' scales, where known
    clusters: Clusters = None

    def examples_of(self, figure: str) -> int:
        """The number of examples behind a figure, at least one; 0 if it is not known."""
        share = self.shares.get(figure)
        if share is None and figure not in self.examples:
            return 0
        return max(1, self.examples[figure] if share is None else int(share.among.sum()))

    def independent(self, figure: str) -> int:
        """The number of clusters behind a figure, at most unless it is a share; of examples, if all are independent.

        0 if not known.
        """
        examples = self.examples_of(figure)
        if self.clusters is None:
            return examples
        share = self.shares.get(figure)
        among = self.clusters if share is None else self.clusters[share.among]
        return min(examples, max(1, len(np.unique(among))))


def clusters_of(keys: Sequence[Hashable]) -> Clusters:
    """The clusters of examples with equal keys; None if all keys differ, or if all are equal."""
    numbers: dict[Hashable, int] = {}
    clusters = np.array([numbers.setdefault(key, len(numbers)) for key in keys])
    return clusters if 1 < len(numbers) < len(keys) else None


def resamples(examples: int, count: int, seed: int, clusters: Clusters = None) -> Iterator[np.ndarray]:
    """Weights of `count` resamples, in chunks (R, N), float64; the same for the same seed."""
    generator = np.random.default_rng(seed)
    units = examples if clusters is None else int(clusters.max()) + 1
    rows = max(1, CHUNK // examples)
    for first in range(0, count, rows):
        drawn = min(rows, count - first)
        places = generator.integers(units, size=(drawn, units), dtype=np.int32)
        places += np.arange(drawn, dtype=np.int32)[:, None] * units
        weights = np.bincount(places.ravel(), minlength=drawn * units).reshape(drawn, units).astype(np.float64)
        yield weights if clusters is None else weights[:, clusters]


def resample(
    resampled: Mapping[str, Resampled], examples: int, count: int, seed: int, clusters: Clusters = None
) -> dict[str, Figures]:
    """The figures of several models on the same resamples, which makes them comparable: name → figure → (count,)."""
    parts: dict[str, list[Figures]] = {name: [] for name in resampled}
    for weights in resamples(examples, count, seed, clusters):
        for name, figures in resampled.items():
            parts[name].append(figures(weights))
    return {name: {key: np.concatenate([part[key] for part in all_parts]) for key in all_parts[0]}
            for name, all_parts in parts.items()}  # fmt: skip


def mean_of(values: Mapping[str, np.ndarray], among: np.ndarray | None = None) -> Resampled:
    """Weighted means of values by example, name → (N,), over those in `among`, (N,), or all.

    NaN for a resample without any of them.
    """
    counted = np.ones(len(next(iter(values.values())))) if among is None else among.astype(np.float64)
    columns = np.stack([*values.values(), np.ones(len(counted))], axis=1) * counted[:, None]  # (N, F + 1)

    def figures(weights: np.ndarray) -> Figures:
        *sums, total = (weights @ columns).T
        with np.errstate(invalid="ignore"):
            return {name: column / total for name, column in zip(values, sums, strict=True)}

    return figures


def whole_shares(values: Mapping[str, np.ndarray], among: np.ndarray) -> dict[str, Share]:
    """The means over `among`, (N,), of those values by example, (N,), that are all 0 or 1: such means are shares."""
    return {
        name: Share((column == 1) & among, among)
        for name, column in values.items()
        if np.isin(column[among], (0, 1)).all()
    }


def widening(examples: int) -> float:
    """The factor by which resamples of so few examples make an interval too narrow (Hesterberg 2015, The American
    Statistician 69, section 5); 1 if their number is not known, and nearly 1 if it is large.

    The variance of resamples has the divisor N instead of N - 1, and their tails are normal rather than Student's t.
    """  # fmt: skip
    return student(examples - 1) / Z * unbiased(examples) if examples > 1 else 1.0


def unbiased(examples: int) -> float:
    """The factor by which the standard deviation of resamples is too small: its divisor is N, not N - 1."""
    return math.sqrt(examples / (examples - 1)) if examples > 1 else 1.0


def percentile_interval(value: float, drawn: np.ndarray, examples: int = 0) -> Interval:
    """The percentile interval (Efron and Tibshirani 1993, chapter 13) of resampled figures (R,), leaving out NaN.

    It is widened around the figure according to the number of `examples`, 0 if that is not known.
    """
    ends = np.nanquantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    low, high = (value + widening(examples) * (float(end) - value) for end in ends)
    return {"low": low, "high": high}


def centred_interval(value: float, drawn: np.ndarray, examples: int = 0, ends: Ends = ANYWHERE) -> Interval:
    """The percentile interval of resamples that are shifted so that their median is at the figure."""
    moved = value - float(np.nanmedian(drawn))
    return clipped(value, percentile_interval(value, drawn + moved, examples), ends)


def spread_interval(value: float, drawn: np.ndarray, examples: int, ends: Ends) -> Interval:
    """The interval of a figure by its standard deviation in resamples, (R,), leaving out NaN.

    On a scale with two ends it is Wilson's interval of as many examples as would give a share that variance, the
    effective sample size of surveys, widened for few `examples`. Unlike percentiles it is right for a figure near an
    end, which a few examples decide, and for the best of many thresholds, which is biased in resamples. It has no width
    if the resamples agree or the figure is at an end; on other scales it is the centred percentile interval.
    """
    low, high = ends
    if not math.isfinite(high - low):
        return centred_interval(value, drawn, examples, ends)
    share, spread = (value - low) / (high - low), widening(examples) * float(np.nanstd(drawn, ddof=1)) / (high - low)
    if value in ends or spread <= ROUNDING:
        return {"low": value, "high": value}
    return on_scale(value, wilson_interval(share, share * (1 - share) / spread**2), ends)


def wilson_interval(share: float, examples: float) -> Interval:
    """Wilson's interval (1927) of a share of `examples`, which may be a mean over seeds; without examples 0 to 1.

    As scipy's `binomtest(k, n).proportion_ci(method="wilson")`, which takes whole numbers only.
    """
    if examples == 0:
        return {"low": 0.0, "high": 1.0}
    middle = share + Z**2 / (2 * examples)
    reach = Z * math.sqrt(share * (1 - share) / examples + Z**2 / (4 * examples**2))
    whole = 1 + Z**2 / examples
    return clipped(share, {"low": (middle - reach) / whole, "high": (middle + reach) / whole}, (0.0, 1.0))


def effective_examples(share: Share, clusters: Clusters) -> float:
    """How many independent examples would tell as much about the share: their number over the design effect.

    That is the share's variance over clusters as a multiple of its variance over examples, at least 1, with Student's t
    for few clusters (Korn and Graubard 1998, Survey Methodology 24), or if few have most of the variance, as texts with
    most of the errors have. It is at most what it would be if all examples of a cluster were alike. A share of 0 or 1
    varies over neither: then each cluster counts as one example. One cluster with another share tells nothing of
    others: 0.
    """
    examples = int(share.among.sum())
    if clusters is None:
        return examples
    of_examples = (share.hits - share.value)[share.among]
    members = np.unique(clusters[share.among], return_inverse=True)[1]
    of_clusters, sizes = np.bincount(members, of_examples), np.bincount(members)
    if share.value in (0, 1):
        return len(of_clusters)
    if len(of_clusters) == 1:
        return 0
    count = len(of_clusters)
    wide = student(_freedom(of_clusters)) ** 2 * count / (count - 1) * float(of_clusters @ of_clusters)
    narrow = student(examples - 1) ** 2 * examples / (examples - 1) * float(of_examples @ of_examples)
    alike = (student(count - 1) / student(examples - 1)) ** 2 * float(sizes @ sizes) / examples
    return examples / min(max(1.0, wide / narrow), alike)


def _freedom(residuals: np.ndarray) -> float:
    """The degrees of freedom of a variance: those of the chi-squared distribution that varies as much as its estimate
    from these residuals, (N,) (Satterthwaite 1946, Biometrics Bulletin 2), at most N - 1.
    """  # fmt: skip
    squares = residuals**2
    variation = float(squares.var() / (squares.mean() ** 2 or 1.0))  # the kurtosis less 1
    return min(len(residuals) - 1.0, 2 * len(residuals) / (variation or 1.0))


def interval_of_examples(
    value: float, shares: Sequence[Share], drawn: np.ndarray, examples: int, ends: Ends, clusters: Clusters = None
) -> Interval:
    """The interval over examples of a figure, or of its mean over seeds.

    `shares` has one for each seed, none if the figure is no share; `drawn` (R,) is the figure in resamples. If these
    agree, or the figure is at an end of its scale, the interval is Wilson's, as if it were a share of `examples`, which
    are independent. From a single one the interval is the whole scale, unless the figure is at an end of it.
    """
    low, high = ends
    if shares:
        known = [(seed.value, effective_examples(seed, clusters)) for seed in shares]
        share, among = np.mean(known, axis=0).tolist()
        return on_scale(value, wilson_interval(share, among), ends)
    found = spread_interval(value, drawn, examples, ends)
    if not math.isfinite(high - low) or (examples > 1 and found["low"] < found["high"]):
        return found
    among = examples if examples > 1 or value in ends else 0
    return on_scale(value, wilson_interval((value - low) / (high - low), among), ends)


def on_scale(value: float, interval: Interval, ends: Ends) -> Interval:
    """A figure's interval, given from 0 to 1, on the scale with these ends."""
    low, high = ends
    return clipped(value, {end: low + at * (high - low) for end, at in interval.items()}, ends)


def intervals(seeds: Sequence[Scored]) -> dict[str, Interval]:
    """The intervals of one method's figures, or of their means over several seeds.

    With one seed, an interval covers the variation over examples, for this model only. With several seeds it covers
    both, and `low_examples` and `high_examples` are the ends over examples alone.
    """
    found = {}
    for name in seeds[0].drawn:
        found[name] = of_examples = _over_examples(name, seeds)
        if len(seeds) > 1:
            both = with_seeds(of_examples, [seed.figures[name] for seed in seeds], seeds[0].ends.get(name, ANYWHERE))
            found[name] = both | {f"{end}_examples": at for end, at in of_examples.items()}
    return found


def _over_examples(name: str, seeds: Sequence[Scored]) -> Interval:
    """The interval over examples alone of a figure, or of its mean over seeds."""
    ends = seeds[0].ends.get(name, ANYWHERE)
    value = float(np.mean([seed.figures[name] for seed in seeds]))
    drawn = np.mean([seed.drawn[name] for seed in seeds], axis=0)
    examples = min(seed.independent(name) if seed.examples.get(name) else 0 for seed in seeds)
    if examples > 1 and all(name in seed.by_class for seed in seeds):
        found = spread_interval(value, drawn, examples, ends)
        return with_classes(value, found, [seed.by_class[name] for seed in seeds], ends, examples)
    shares = [seed.shares[name] for seed in seeds] if all(name in seed.shares for seed in seeds) else []
    return interval_of_examples(value, shares, drawn, examples, ends, seeds[0].clusters)


def with_classes(value: float, interval: Interval, seeds: Sequence[ByClass], ends: Ends, independent: int) -> Interval:
    """The interval of a macro mean in which some classes have a figure of 0 or 1; one `ByClass` per seed.

    Resamples hardly move such a class's figure, so Wilson's interval of its examples, of which at most so many are
    `independent`, is added, weighted as the class is in the mean; half-widths add in quadrature.
    """
    values = np.mean([seed.values for seed in seeds], axis=0)
    weight = 1 / float(np.mean([seed.classes for seed in seeds]))
    below, above = [value - interval["low"]], [interval["high"] - value]
    counts = np.mean([seed.examples for seed in seeds], axis=0)
    for figure, examples in zip(values.tolist(), counts.tolist(), strict=True):
        if figure in (0, 1):
            found = wilson_interval(figure, min(examples, independent))
            below.append(weight * (figure - found["low"]))
            above.append(weight * (found["high"] - figure))
    return clipped(value, {"low": value - math.hypot(*below), "high": value + math.hypot(*above)}, ends)


def with_seeds(of_examples: Interval, by_seed: Sequence[float], ends: Ends) -> Interval:
    """The interval of a mean over two or more seeds, over examples and seeds."""
    middle, count = float(np.mean(by_seed)), len(by_seed)
    seeds = student(count - 1) * float(np.std(by_seed, ddof=1)) / math.sqrt(count)
    below, above = (math.hypot(middle - of_examples["low"], seeds), math.hypot(of_examples["high"] - middle, seeds))
    return clipped(middle, {"low": middle - below, "high": middle + above}, ends)


def student(freedom: float, p: float = 1 - LEVEL) -> float:
    """Half the width of Student's interval of level 1 - p, in standard errors."""
    return -float(stdtrit(freedom, p / 2))


def clipped(value: float, interval: Interval, ends: Ends) -> Interval:
    """The interval cut at the ends of its scale, widened to contain the figure in spite of rounding."""
    low, high = (min(max(at, ends[0]), ends[1]) for at in (interval["low"], interval["high"]))
    return {"low": min(low, value), "high": max(high, value)}
