"""How confidence intervals are drawn."""

from typing import Annotated

from pydantic import Field

from retrace.core.settings import Section, Seed

BootstrapSamples = Annotated[int, Field(ge=100)]


class ResampleSettings(Section):
    """How confidence intervals are drawn."""

    bootstrap_samples: BootstrapSamples = Field(default=10_000, description="behind every interval and comparison")
    seed: Seed = Field(default=0, description="draws the bootstrap samples")
