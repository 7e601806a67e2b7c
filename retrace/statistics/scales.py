"""Scales of figures, their intervals and comparisons: the types that statistics, evaluation and reports share."""

import math
from dataclasses import dataclass
from typing import Literal

from retrace.core.files import rounded

SHARES = {"fraction": 1.0, "percentage": 100.0, "percent": 100.0}  # scales of shares, and the whole on each
Better = Literal["higher", "lower", "neither"]  # neither: a count or a threshold
Interval = dict[str, float]  # low and high


@dataclass(frozen=True)
class Scale:
    """How figures on a scale are shown and compared."""

    digits: int  # after the point
    better: Better = "higher"  # unless a figure says otherwise
    ends: tuple[float, float] = (-math.inf, math.inf)  # smallest and largest possible figure


SCALES = {
    "fraction": Scale(4, ends=(0.0, 1.0)),
    "percentage": Scale(2, ends=(0.0, 100.0)),
    "percent": Scale(2),  # in published tables, where changes are percentages too
    "correlation": Scale(4, ends=(-1.0, 1.0)),
    "score": Scale(4, "neither"),
    "ratio": Scale(4, "neither", (0.0, math.inf)),
    "count": Scale(0, "neither", (0.0, math.inf)),
    "perplexity": Scale(2, "lower"),
    "loss": Scale(4, "lower"),
    "seconds": Scale(0, "lower"),
    "mebibytes": Scale(0, "lower"),
}


@dataclass(frozen=True)
class Figure:
    """The scale, direction and display name of a figure."""

    scale: str  # one of SCALES
    better: Better
    name: str = ""  # as readers see it; if empty, the key with spaces


Legend = dict[str, Figure]  # by key
CURVES: Legend = {  # columns of learning curves, besides the metrics that are computed after every epoch
    "training_loss": Figure("loss", "lower", "training loss"),
    "validation_loss": Figure("loss", "lower", "validation loss"),
    "perplexity": Figure("perplexity", "lower", "perplexity"),
    "next_sentence_accuracy": Figure("fraction", "higher", "next-sentence accuracy"),
}
MEASURES: Legend = {  # of training runs; they vary with the machine
    "seconds": Figure("seconds", "lower", "time"),
    "evaluation_seconds": Figure("seconds", "lower", "time of evaluation"),
    "peak_memory_mib": Figure("mebibytes", "lower", "peak memory"),
    "gpu_memory_mib": Figure("mebibytes", "lower", "GPU memory"),
}


def loss_on(part: str) -> Legend:
    """The loss at the epoch that was kept, by its key: on dev the validation loss, on a test set just the loss."""
    name = "validation loss" if part == "dev" else "loss"
    return {name.replace(" ", "_"): Figure("loss", "lower", name)}


@dataclass(frozen=True)
class Shortfall:
    """A figure that is not significantly better than another, by the 95% interval of the difference."""

    figure: str
    value: float
    other: str  # a baseline, a method, or before_training
    against: float  # its figure
    low: float  # of the interval of `value` less `against`
    high: float
    note: str = ""

    def __str__(self) -> str:
        # So few digits are the same on every processor.
        value, against = (f"{rounded(figure):.4g}" for figure in (self.value, self.against))
        difference, *ends = (f"{rounded(figure):.3g}" for figure in (self.value - self.against, self.low, self.high))
        said = f"{self.figure} {value}, {self.other.replace('_', ' ')} {against}; difference {difference}"
        return f"{said} (95% interval {' to '.join(ends)}) {self.note}".strip()


Flags = dict[str, str | Shortfall]  # name → evidence, which prints as words


@dataclass(frozen=True)
class Comparison:
    """Two methods compared by one figure."""

    figure: str
    first: str
    second: str
    of: Literal["methods", "models"]  # methods by their means over seeds; models where either has one seed
    difference: float  # the first's figure less the second's
    low: float  # 95% interval of the difference
    high: float
    test: str
    p: float  # of no difference, two-sided
    p_corrected: float  # by Holm, for all pairs of this figure
    verdict: str  # the better method, or a tie; from one seed, whether these models differ
    # The smallest true difference found with a power of 80%, corrected for all pairs; None: larger than the scale.
    detectable: float | None


def factor(given: str, wanted: str) -> float:
    """The factor that converts a figure from one scale to another: 100 from a fraction to a percentage."""
    return SHARES[wanted] / SHARES[given] if given in SHARES and wanted in SHARES else 1.0
