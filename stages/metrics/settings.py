"""Which scores are computed for which kind of task: data in params.yaml, each a file of stages/metrics/scores."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stages.harness.settings import build, require, section

SECTION = "scores"


@dataclass(frozen=True)
class ResampleSettings:
    """How intervals are drawn."""

    resamples: int = 10_000  # of the bootstrap
    seed: int = 0  # draws the resamples

    def __post_init__(self) -> None:
        require(self.resamples >= 100, "resamples", self.resamples, "expected 100 or more")
        require(self.seed >= 0, "seed", self.seed, "expected 0 or more")


@dataclass(frozen=True, kw_only=True)
class ScoreSettings(ResampleSettings):
    """Scores, and how their intervals are drawn."""

    classification: tuple[str, ...]
    squad: tuple[str, ...]
    curves: tuple[str, ...]  # those of both that are computed after every epoch too

    def __post_init__(self) -> None:
        super().__post_init__()
        for field in ("classification", "squad"):
            chosen = getattr(self, field)
            require(bool(chosen), field, list(chosen), "expected at least one score")
            shown = set(chosen) & set(self.curves)
            require(bool(shown), "curves", list(self.curves), f"expected one at least of scores.{field}")


def read_resampling(params: Mapping[str, Any]) -> ResampleSettings:
    """How intervals are drawn, for a stage that does not depend on which scores there are.

    Raises InputError where it is said wrongly.
    """
    read = {name: section(params, f"{SECTION}.{name}") for name in ("resamples", "seed")}
    return build(ResampleSettings, {SECTION: read}, SECTION)
