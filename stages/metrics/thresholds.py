"""The best threshold of a model that may abstain, as `find_best_thresh` of SQuAD's official script seeks it.

From abstaining always on, one question more is answered at a time, the surest first, and each
changes the sum of the scores by its gain.
"""

from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_array


def best_threshold(no_answer: np.ndarray, gains: np.ndarray, abstaining: float) -> tuple[float, float]:
    """The largest sum, and the `no_answer` of the last question answered for it, 0 where none is.

    `no_answer` and `gains` are (N,), `abstaining` is the sum where none is answered. Questions with equal
    `no_answer` are answered one at a time too, as they come.
    """
    order = np.argsort(no_answer, kind="stable")
    running = np.cumsum([abstaining, *gains[order]])
    best = int(running.argmax())
    return float(running[best]), float(no_answer[order[best - 1]]) if best else 0.0


def resampled_best(no_answer: np.ndarray, gains: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """How much the largest sum is above abstaining always, for weights of questions: (N, R) → (R,), float64.

    A sum can be largest only where gains end and losses begin, so one is kept for each such stretch.
    """
    order = np.argsort(no_answer, kind="stable")
    order = order[gains[order] != 0]
    ends = np.diff(np.sign(gains[order]), append=-1.0) < 0
    stretch = np.cumsum(ends) - ends  # what each question belongs to; the losses at the end to none
    count = int(ends.sum())
    order, stretch = order[stretch < count], stretch[stretch < count]
    sums = csr_array((gains[order], (stretch, order)), shape=(count, len(gains)))

    def best(weights: np.ndarray) -> np.ndarray:
        return np.cumsum(sums @ weights, axis=0).max(axis=0, initial=0.0)

    return best
