"""Bootstrap resamples (Efron and Tibshirani 1993) as weights of examples.

A resample of N examples with replacement is how often each was drawn. So a score is resampled
without drawing examples: it is a function of weights (R, N) that gives R figures at once, most often
by matrix products with what it keeps of each example.

How far a figure may be off: 95% intervals, which hold their figure always and never leave its scale.

Two levels of chance: the test set is a sample of examples, and a model is one of those that other seeds
would have given. The interval of examples is Wilson's of a share and the bootstrap's of any other figure.
Of a mean over seeds Student's interval is added to it, half-widths in squares (MOVER: Zou and Donner 2008,
Statistics in Medicine 27). From one seed nothing is known of seeds: its interval is of examples alone, so
of this model and not of its method.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from retrace.statistics.scales import Interval

CHUNK = 1 << 18  # weights held at a time: what a processor's cache holds

Figures = dict[str, np.ndarray]  # name → (R,)
Resampled = Callable[[np.ndarray], Figures]  # weights (R, N) → a figure for each row of them


def resamples(examples: int, count: int, seed: int) -> Iterator[np.ndarray]:
    """Weights of `count` resamples, in chunks (R, N), float64; the same for the same seed."""
    generator = np.random.default_rng(seed)
    rows = max(1, CHUNK // examples)
    for first in range(0, count, rows):
        drawn = min(rows, count - first)
        places = generator.integers(examples, size=(drawn, examples), dtype=np.int32)
        places += np.arange(drawn, dtype=np.int32)[:, None] * examples
        weights = np.bincount(places.ravel(), minlength=drawn * examples)
        yield weights.reshape(drawn, examples).astype(np.float64)


def draw(resampled: Mapping[str, Resampled], examples: int, count: int, seed: int) -> dict[str, Figures]:
    """The figures of several models on the same resamples, so that they can be compared: name → figure → (count,)."""
    parts: dict[str, list[Figures]] = {name: [] for name in resampled}
    for weights in resamples(examples, count, seed):
        for name, figures in resampled.items():
            parts[name].append(figures(weights))
    return {name: {key: np.concatenate([part[key] for part in all_parts]) for key in all_parts[0]}
            for name, all_parts in parts.items()}  # fmt: skip


def together(every: Iterable[Resampled]) -> Resampled:
    """The figures of all of them."""
    every = list(every)
    return lambda weights: {name: values for figures in every for name, values in figures(weights).items()}


def mean_of(values: Mapping[str, np.ndarray], among: np.ndarray | None = None) -> Resampled:
    """The weighted means of what each example scores, name → (N,), over those in `among`, (N,), or all.

    Not a number in a resample that holds none of them.
    """
    size = len(next(iter(values.values())))
    counted = np.ones(size) if among is None else among.astype(np.float64)
    columns = np.stack([*values.values(), np.ones(size)], axis=1) * counted[:, None]  # (N, F + 1)

    def figures(weights: np.ndarray) -> Figures:
        *sums, total = (weights @ columns).T
        with np.errstate(invalid="ignore"):
            return {name: of / total for name, of in zip(values, sums, strict=True)}

    return figures


LEVEL = 0.95
Z = 1.959963984540054  # of the normal distribution at LEVEL, both sides
ANYWHERE = (-math.inf, math.inf)

Ends = tuple[float, float]  # of a scale


@dataclass(frozen=True)
class Share:
    """A figure that is a share of examples: which of them count, and among which."""

    hits: np.ndarray  # (N,), bool, none but among the asked
    asked: np.ndarray  # (N,), bool

    @classmethod
    def among_all(cls, hits: np.ndarray) -> "Share":
        """A share of all examples."""
        return cls(hits, np.ones_like(hits, dtype=bool))

    @property
    def value(self) -> float:
        """0 to 1; 0 of no example."""
        return int(self.hits.sum()) / max(1, int(self.asked.sum()))


def whole_shares(values: Mapping[str, np.ndarray], among: np.ndarray) -> dict[str, Share]:
    """Of means over `among`, (N,), of what each example scores, (N,), those where that is always 0 or 1."""
    return {
        name: Share((column == 1) & among, among)
        for name, column in values.items()
        if np.isin(column[among], (0, 1)).all()
    }


def percentile_interval(drawn: np.ndarray) -> Interval:
    """The bootstrap's percentile interval (Efron and Tibshirani 1993, chapter 13) of resampled figures (R,).

    Resamples in which the figure is not defined, such as those without a question of its kind, are left out.
    """
    low, high = np.nanquantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return {"low": float(low), "high": float(high)}


def centred_interval(value: float, drawn: np.ndarray, ends: Ends = ANYWHERE) -> Interval:
    """The percentile interval moved so that the middle resample is at the figure.

    A figure such as a calibration error or the best of many thresholds is higher in resamples than it is; their
    spread tells how sure it is, and their place does not.
    """
    moved = value - float(np.nanmedian(drawn))
    return held(value, {end: at + moved for end, at in percentile_interval(drawn).items()}, ends)


def wilson_interval(share: float, examples: float) -> Interval:
    """The interval of a share of so many examples (Wilson 1927), which keeps off 0 and 1; of none it is everything."""
    if examples == 0:
        return {"low": 0.0, "high": 1.0}
    middle = share + Z**2 / (2 * examples)
    reach = Z * math.sqrt(share * (1 - share) / examples + Z**2 / (4 * examples**2))
    whole = 1 + Z**2 / examples
    # Where the share is 0 or 1 that end is the share itself, which floating point may miss by a digit.
    low = 0.0 if share == 0 else (middle - reach) / whole
    high = 1.0 if share == 1 else (middle + reach) / whole
    return held(share, {"low": low, "high": high}, (0.0, 1.0))


def interval_of_examples(
    value: float, shares: Sequence[Share], drawn: np.ndarray, examples: int, ends: Ends
) -> Interval:
    """Of a figure, or of its mean over seeds.

    `shares` are those of each seed, none where the figure is no share; `drawn` (R,) is the figure in resamples.
    A figure at an end of its scale that resamples do not move is as sure as a share of so many `examples` there, and
    of one example nothing is known.
    """
    low, high = ends
    if shares:
        share, asked = (float(np.mean(of)) for of in zip(*((s.value, s.asked.sum()) for s in shares), strict=True))
        found = wilson_interval(share, asked)
    elif math.isfinite(high - low) and (examples < 2 or (value in ends and _does_not_move(drawn))):
        found = wilson_interval((value - low) / (high - low), examples if value in ends else 0)
    else:
        return centred_interval(value, drawn, ends)
    return held(value, {end: low + at * (high - low) for end, at in found.items()}, ends)


def _does_not_move(drawn: np.ndarray) -> bool:
    """Whether 95% of the resamples (R,) give one figure; a few may lack a class."""
    found = percentile_interval(drawn)
    return found["low"] == found["high"]


def with_seeds(of_examples: Interval, by_seed: Sequence[float], ends: Ends) -> Interval:
    """The interval of the mean of figures of S seeds, for the choice of examples and of seeds; S is 2 or more."""
    middle, count = float(np.mean(by_seed)), len(by_seed)
    seeds = student(count - 1) * float(np.std(by_seed, ddof=1)) / math.sqrt(count)
    below, above = (math.hypot(middle - of_examples["low"], seeds), math.hypot(of_examples["high"] - middle, seeds))
    return held(middle, {"low": middle - below, "high": middle + above}, ends)


def student(freedom: float, p: float = 1 - LEVEL) -> float:
    """How many standard errors Student's interval reaches to each side; beyond it are so many of all."""
    return -float(stdtrit(freedom, p / 2))


def held(value: float, interval: Interval, ends: Ends = ANYWHERE) -> Interval:
    """The interval cut off at the ends of the scale; it holds the figure whatever floating point did."""
    low, high = (min(max(at, ends[0]), ends[1]) for at in (interval["low"], interval["high"]))
    return {"low": min(low, value), "high": max(high, value)}
