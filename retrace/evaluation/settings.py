"""Which metrics are computed for which kind of task."""

from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from retrace.core.settings import DataSource, Params, require
from retrace.results.grid import Grid
from retrace.statistics.settings import ResampleSettings

Metrics = Annotated[tuple[str, ...], Field(min_length=1)]
KINDS = {"classification": "Classified", "question_answering": "Answered"}  # what the metrics of each are functions of


def metric_names(outcome: str) -> list[str]:
    """The metrics of an outcome's class. Their files are read and not imported, as that takes seconds."""
    folder = Path(__file__).parent / "metrics"
    return sorted(path.stem for path in folder.glob("*.py") if f"def resampled(outcome: {outcome})" in path.read_text())


class MetricSettings(ResampleSettings):
    """Metrics, each a file of retrace/evaluation/metrics, and how their intervals are drawn."""

    classification: Metrics = Field(description="files of retrace/evaluation/metrics")
    question_answering: Metrics = Field(description="the same, of questions")
    every_epoch: tuple[str, ...] = Field(description="those of both that are on the learning curves")

    @model_validator(mode="after")
    def _there(self) -> Self:
        for field, kind in KINDS.items():
            names = metric_names(kind)
            for name in getattr(self, field):
                require(name in names, field, name, f"expected one of {', '.join(names)}")
        every = [name for kind in KINDS.values() for name in metric_names(kind)]
        for name in self.every_epoch:
            require(name in every, "every_epoch", name, f"expected one of {', '.join(every)}")
        for field in ("classification", "question_answering"):
            on_curves = set(getattr(self, field)) & set(self.every_epoch)
            require(bool(on_curves), "every_epoch", self.every_epoch, f"expected at least one of metrics.{field}")
        return self


class EvaluateParams(Params):
    """What stages/evaluate.py reads."""

    data: DataSource
    finetune: Grid
    metrics: MetricSettings
