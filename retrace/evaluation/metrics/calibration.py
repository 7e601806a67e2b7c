"""Expected calibration error (Guo et al. 2017, equation 3): how far confidence and accuracy are apart; 0 is perfect.

Examples are put in 15 bins by the probability of the decided class; the difference between mean
confidence and accuracy of each bin counts by how many it holds. Absent where a model gives no
probabilities.
"""

import numpy as np

from retrace.evaluation.outcomes import Classified
from retrace.statistics.intervals import Resampled
from retrace.statistics.scales import Figure

FIGURES = {"expected_calibration_error": Figure("fraction", "lower")}
BINS = 15


def resampled(outcome: Classified) -> Resampled:
    """For weights of examples."""
    if outcome.probabilities is None:
        return lambda _: {}
    confidence = outcome.probabilities[np.arange(len(outcome)), outcome.predicted]
    # A confidence on the border of two bins belongs to the lower one.
    bins = np.clip(np.ceil(confidence * BINS).astype(int) - 1, 0, BINS - 1)
    excess = np.eye(BINS)[bins] * (np.equal(outcome.labels, outcome.predicted) - confidence)[:, None]

    def figures(weights: np.ndarray) -> dict[str, np.ndarray]:
        return {"expected_calibration_error": np.abs(weights @ excess).sum(axis=1) / weights.sum(axis=1)}

    return figures
