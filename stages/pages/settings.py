"""What a user can choose about the report."""

from dataclasses import dataclass
from typing import Literal

from stages.harness.settings import require


@dataclass(frozen=True)
class ReportSettings:
    """What the report shows."""

    samples: int = 6  # predictions shown of each task
    sampled: Literal["spread", "first"] = "spread"  # evenly over the data, or those that it begins with

    def __post_init__(self) -> None:
        require(self.samples > 0, "samples", self.samples, "expected a whole number above 0")

    @property
    def said(self) -> str:
        """Which examples these are, in words."""
        return "The first of each task's data." if self.sampled == "first" else "Spread evenly over each task's data."

    def places(self, total: int) -> list[int]:
        """Which of `total` examples are shown, the same every time."""
        count = min(self.samples, total)
        return list(range(count)) if self.sampled == "first" else [i * total // count for i in range(count)]
