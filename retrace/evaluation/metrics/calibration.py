"""Expected calibration error (Guo et al. 2017, equation 3): how far confidence and accuracy are apart; 0 is perfect.

Examples are put in 15 bins by the probability of the predicted class. The error is the absolute difference between a
bin's mean confidence and its accuracy, averaged over bins with their numbers of examples as weights. Absent if a model
gives no probabilities.

It is biased: by chance it is above 0 even for a perfectly calibrated model, the more so the fewer examples a bin has,
and resampling adds to the bias. So it has no interval, and no method is called better because of it.
"""

from collections.abc import Sequence

import numpy as np

from retrace.evaluation.outcomes import Classified
from retrace.evaluation.records import Columns
from retrace.statistics.intervals import Resampled
from retrace.statistics.scales import Figure

FIGURES = {"expected_calibration_error": Figure("fraction", "lower")}
BINS = 15


def score(outcome: Classified) -> dict[str, float]:
    """The error, a fraction."""
    if outcome.probabilities is None:
        return {}
    bins, confidence = _bins(outcome.probabilities, outcome.predicted)
    excess = np.bincount(bins, np.equal(outcome.labels, outcome.predicted) - confidence)
    return {"expected_calibration_error": float(np.abs(excess).sum() / len(outcome))}


def resampled(outcome: Classified) -> Resampled:
    """No figures, as resamples are biased."""
    return lambda _: {}


def reliability(outcomes: Sequence[Classified]) -> Columns:
    """Mean confidence, accuracy and number of examples of each bin that has any, pooled over seeds.

    The points of a reliability diagram (Niculescu-Mizil and Caruana 2005). The number is per seed. All outcomes have
    probabilities.
    """
    found = [_bins(each.probabilities, each.predicted) for each in outcomes if each.probabilities is not None]
    bins, confidence = (np.concatenate(parts) for parts in zip(*found, strict=True))
    right = np.concatenate([np.equal(outcome.labels, outcome.predicted) for outcome in outcomes])
    counts = np.bincount(bins)
    sums = {"confidence": np.bincount(bins, confidence), "accuracy": np.bincount(bins, right)}
    filled = counts > 0
    columns = {name: column[filled] / counts[filled] for name, column in sums.items()}
    columns["examples"] = counts[filled] / len(outcomes)
    return {name: column.tolist() for name, column in columns.items()}


def _bins(probabilities: np.ndarray, predicted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The bin and the confidence of each decision, (N,); on a border it is in the lower bin."""
    confidence = probabilities[np.arange(len(predicted)), predicted]
    return np.clip(np.ceil(confidence * BINS).astype(int) - 1, 0, BINS - 1), confidence
