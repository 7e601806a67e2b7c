"""How far a figure may be off because the test set is a sample: 95% intervals.

Examples are resampled with the seeds held as they are, so the interval is that of the test set; where
there are several seeds, a second interval resamples them too, and their spread stands beside it.
"""

import math
from collections.abc import Sequence

import numpy as np

LEVEL = 0.95
Z = 1.959963984540054  # of the normal distribution at LEVEL, both sides
FEW = 10  # examples on the rarer side of a share, below which the bootstrap's interval is too narrow

Interval = dict[str, float]  # low and high


def percentile_interval(drawn: np.ndarray) -> Interval:
    """The bootstrap's percentile interval (Efron and Tibshirani 1993, chapter 13) of resampled figures (R,).

    Resamples in which the figure is not defined, such as those without a question of its kind, are left out.
    """
    low, high = np.nanquantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return {"low": float(low), "high": float(high)}


def wilson_interval(share: float, examples: int) -> Interval:
    """The interval of a share of so many examples (Wilson 1927), which keeps off 0 and 1."""
    middle = share + Z**2 / (2 * examples)
    reach = Z * math.sqrt(share * (1 - share) / examples + Z**2 / (4 * examples**2))
    whole = 1 + Z**2 / examples
    return {"low": (middle - reach) / whole, "high": (middle + reach) / whole}


def share_interval(share: float, examples: int, drawn: np.ndarray) -> Interval:
    """Wilson's interval near 0 and 1, where hardly any resample differs, else the bootstrap's."""
    rarer = min(share, 1 - share) * examples
    return wilson_interval(share, examples) if rarer < FEW else percentile_interval(drawn)


def mean_over_seeds(by_seed: Sequence[np.ndarray]) -> np.ndarray:
    """Resampled figures of each seed, S times (R,), on the same resamples → their means, (R,)."""
    return np.mean(by_seed, axis=0)


def seeds_resampled(by_seed: Sequence[np.ndarray], generator: np.random.Generator) -> np.ndarray:
    """The same with seeds drawn anew within each resample, so that both sources of chance are in it."""
    figures = np.stack(by_seed)
    chosen = generator.integers(len(figures), size=figures.shape)
    return np.take_along_axis(figures, chosen, axis=0).mean(axis=0)
