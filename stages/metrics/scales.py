"""What a figure is measured in: the digits that it is shown with, and how one scale turns into another."""

from dataclasses import dataclass

SHARES = {"fraction": 1.0, "percentage": 100.0, "percent": 100.0}  # what a whole is on scales of shares


@dataclass(frozen=True)
class Scale:
    """How figures of a kind are shown and compared."""

    digits: int  # after the point
    is_best_high: bool = True


SCALES = {
    "fraction": Scale(4),
    "percentage": Scale(2),
    "percent": Scale(2),
    "correlation": Scale(4),
    "score": Scale(4),
    "count": Scale(0),
    "perplexity": Scale(2, is_best_high=False),
    "loss": Scale(4, is_best_high=False),
    "seconds": Scale(0, is_best_high=False),
    "mebibytes": Scale(0, is_best_high=False),
}


def factor(given: str, wanted: str) -> float:
    """What to multiply a figure on one scale by to have it on another: 100 from a fraction to a percentage, say."""
    return SHARES[wanted] / SHARES[given] if given in SHARES and wanted in SHARES else 1.0
