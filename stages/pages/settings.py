"""What a user can choose about the report."""

from dataclasses import dataclass

from stages.harness.settings import require


@dataclass(frozen=True)
class ReportSettings:
    """What the report shows."""

    samples: int = 6  # predictions shown of each task

    def __post_init__(self) -> None:
        require(self.samples > 0, "samples", self.samples, "expected a whole number above 0")
