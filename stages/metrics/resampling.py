"""Bootstrap resamples (Efron and Tibshirani 1993) as weights of examples.

A resample of N examples with replacement is how often each was drawn. So a score is resampled
without drawing examples: it is a function of weights (R, N) that gives R figures at once, most often
by matrix products with what it keeps of each example.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np

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
