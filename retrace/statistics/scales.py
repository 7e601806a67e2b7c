"""What a figure is measured in and which way it is better: its digits, its ends, how one scale turns into another."""

import math
from dataclasses import dataclass
from typing import Literal

SHARES = {"fraction": 1.0, "percentage": 100.0, "percent": 100.0}  # what a whole is on scales of shares
Better = Literal["higher", "lower", "neither"]  # which way a figure is better; a count or a threshold neither


@dataclass(frozen=True)
class Scale:
    """How figures of a kind are shown and compared."""

    digits: int  # after the point
    is_best_high: bool = True
    ends: tuple[float, float] = (-math.inf, math.inf)  # that no figure of the kind is beyond


SCALES = {
    "fraction": Scale(4, ends=(0.0, 1.0)),
    "percentage": Scale(2, ends=(0.0, 100.0)),
    "percent": Scale(2),  # of published tables, where changes are percentages too
    "correlation": Scale(4, ends=(-1.0, 1.0)),
    "score": Scale(4),
    "count": Scale(0, ends=(0.0, math.inf)),
    "perplexity": Scale(2, is_best_high=False),
    "loss": Scale(4, is_best_high=False),
    "seconds": Scale(0, is_best_high=False),
    "mebibytes": Scale(0, is_best_high=False),
}


@dataclass(frozen=True)
class Figure:
    """What a score's file says of a figure that it computes."""

    scale: str  # one of SCALES
    better: Better


def factor(given: str, wanted: str) -> float:
    """What to multiply a figure on one scale by to have it on another: 100 from a fraction to a percentage, say."""
    return SHARES[wanted] / SHARES[given] if given in SHARES and wanted in SHARES else 1.0
