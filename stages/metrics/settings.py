"""Which scores are computed for which kind of task: data in params.yaml, each a file of stages/metrics/scores."""

from dataclasses import dataclass

from stages.harness.settings import require


@dataclass(frozen=True)
class ScoreSettings:
    """Scores, and how their intervals are drawn."""

    classification: tuple[str, ...]
    squad: tuple[str, ...]
    curves: tuple[str, ...]  # those of both that are computed after every epoch too
    resamples: int = 10_000  # of the bootstrap
    seed: int = 0  # draws the resamples

    def __post_init__(self) -> None:
        for field in ("classification", "squad"):
            chosen = getattr(self, field)
            require(bool(chosen), field, list(chosen), "expected at least one score")
            shown = set(chosen) & set(self.curves)
            require(bool(shown), "curves", list(self.curves), f"expected one at least of scores.{field}")
        require(self.resamples >= 100, "resamples", self.resamples, "expected 100 or more")
