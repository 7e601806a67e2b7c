"""How intervals are drawn."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from retrace.core.settings import build, require, section

SECTION = "scores"


@dataclass(frozen=True)
class ResampleSettings:
    """How intervals are drawn."""

    resamples: int = 10_000  # of the bootstrap
    seed: int = 0  # draws the resamples

    def __post_init__(self) -> None:
        require(self.resamples >= 100, "resamples", self.resamples, "expected 100 or more")
        require(self.seed >= 0, "seed", self.seed, "expected 0 or more")


def read_resampling(params: Mapping[str, Any]) -> ResampleSettings:
    """How intervals are drawn, for a stage that does not depend on which scores there are.

    Raises InputError where it is said wrongly.
    """
    read = {name: section(params, f"{SECTION}.{name}") for name in ("resamples", "seed")}
    return build(ResampleSettings, {SECTION: read}, SECTION)
