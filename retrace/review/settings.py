"""Settings of `retrace review`: how much a result may differ without anyone having to look."""

from pydantic import Field

from retrace.core.settings import Params, Section
from retrace.statistics.scales import SHARES, Figure


class Tolerance(Section):
    """How much a figure may differ by chance: from another processor, or another seed."""

    points: float = Field(
        default=5.0, ge=0, description="tolerated change of accuracies, F1 and other shares, in percentage points"
    )
    percent: float = Field(
        default=10.0, ge=0, description="tolerated change of losses, perplexities and all other figures, in percent"
    )

    def of(self, what: Figure, value: float) -> float:
        """The tolerance around a value, on the figure's scale."""
        return self.points / 100 * SHARES[what.scale] if what.scale in SHARES else self.percent / 100 * abs(value)

    def text(self, what: Figure) -> str:
        """The tolerance of a figure in words."""
        return f"{self.points:g} points" if what.scale in SHARES else f"{self.percent:g}%"


class ReviewSettings(Section):
    """The settings of `retrace review`."""

    tolerance: Tolerance = Tolerance()


class ReviewParams(Params):
    """What `retrace review` reads."""

    review: ReviewSettings = ReviewSettings()
