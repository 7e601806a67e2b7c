"""Means over a part of the examples, such as the questions that have an answer."""

from collections.abc import Mapping

import numpy as np

from stages.metrics.resampling import Figures, Resampled


def mean_among(values: Mapping[str, np.ndarray], among: np.ndarray) -> Resampled:
    """The weighted means of what each example scores, name → (N,), over those in `among`, (N,).

    Not a number in a resample that holds none of them.
    """
    columns = np.stack([*values.values(), np.ones(len(among))], axis=1) * among[:, None]  # (N, F + 1)

    def figures(weights: np.ndarray) -> Figures:
        *sums, total = (weights @ columns).T
        with np.errstate(invalid="ignore"):
            return {name: of / total for name, of in zip(values, sums, strict=True)}

    return figures
