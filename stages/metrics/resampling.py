"""Bootstrap resamples (Efron and Tibshirani 1993) as weights of examples.

A resample of N examples with replacement is how often each was drawn. So a score is resampled
without drawing examples: it is a function of weights (R, N) that gives R figures at once, most often
by matrix products with what it keeps of each example.
"""

from collections.abc import Callable, Iterator

import numpy as np

CHUNK = 1 << 22  # weights held at a time

Figures = dict[str, np.ndarray]  # name → (R,)
Resampled = Callable[[np.ndarray], Figures]  # (R, N) → a figure for each row of weights


def resamples(examples: int, count: int, seed: int) -> Iterator[np.ndarray]:
    """Weights of `count` resamples, in chunks (R, N), float32; the same for the same seed."""
    generator = np.random.default_rng(seed)
    rows = max(1, CHUNK // examples)
    for first in range(0, count, rows):
        drawn = min(rows, count - first)
        places = generator.integers(examples, size=(drawn, examples), dtype=np.int32)
        places += np.arange(drawn, dtype=np.int32)[:, None] * examples
        weights = np.bincount(places.ravel(), minlength=drawn * examples)
        yield weights.reshape(drawn, examples).astype(np.float32)


def mean_of(values: dict[str, np.ndarray]) -> Resampled:
    """The weighted means of what each example scores: name → (N,)."""
    columns = np.stack(list(values.values()), axis=1).astype(np.float64)

    def figures(weights: np.ndarray) -> Figures:
        sums = weights.astype(np.float64) @ columns / weights.sum(axis=1, dtype=np.float64)[:, None]
        return dict(zip(values, sums.T, strict=True))

    return figures
