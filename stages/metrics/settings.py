"""Which scores are computed for which task: data in params.yaml, each a file of stages/metrics/scores."""

from dataclasses import dataclass

from stages.harness.settings import require


@dataclass(frozen=True)
class ScoreSettings:
    """Scores of each task; the first of each task is the one that methods are compared by."""

    sst2: tuple[str, ...]
    squad: tuple[str, ...]
    margin: float = 2.0  # points by which a model must beat the best trivial baseline, or it is flagged

    def __post_init__(self) -> None:
        for field in ("sst2", "squad"):
            require(bool(getattr(self, field)), field, [], "expected at least one score")
        require(self.margin >= 0, "margin", self.margin, "expected 0 or more")
