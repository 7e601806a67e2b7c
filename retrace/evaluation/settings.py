"""Which scores are computed for which kind of task: data in params.yaml, each a file of retrace/evaluation/metrics."""

from dataclasses import dataclass

from retrace.core.settings import require
from retrace.statistics.settings import ResampleSettings

SECTION = "scores"


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
