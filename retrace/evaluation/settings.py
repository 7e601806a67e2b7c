"""Settings of evaluation: which metrics are computed for each kind of task, and the bootstrap."""

import ast
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from retrace.core.settings import Params, Resamples, Section, Seed, parse_source, require, require_each_once
from retrace.results.grid import Grid

Metrics = Annotated[tuple[str, ...], Field(min_length=1)]
FOLDER = Path(__file__).parent / "metrics"
KINDS = {"classification": "Classified", "question_answering": "Answered"}  # the type that the kind's metrics take


def metric_names(outcome: str) -> list[str]:
    """The metrics that take an outcome of this type. Their files are only parsed, as importing them takes seconds."""
    return sorted(path.stem for path in FOLDER.glob("*.py") if _taken_by(path) == outcome)


def _taken_by(path: Path) -> str | None:
    """The type of outcome that a metric's `resampled` takes."""
    for line in parse_source(path):
        if isinstance(line, ast.FunctionDef) and line.name == "resampled" and line.args.args[0].annotation:
            return ast.unparse(line.args.args[0].annotation)
    return None


class MetricSettings(Section):
    """The metrics, each a file of retrace/evaluation/metrics, and the bootstrap samples for their intervals."""

    bootstrap_samples: Resamples = Field(default=10_000, description="bootstrap samples per interval and comparison")
    seed: Seed = Field(default=0, description="seed of the bootstrap samples")
    classification: Metrics = Field(description="metrics of classification, files of retrace/evaluation/metrics")
    question_answering: Metrics = Field(description="metrics of question answering, likewise")
    every_epoch: tuple[str, ...] = Field(description="metrics of both kinds that are in the learning curves")

    @model_validator(mode="after")
    def _there(self) -> Self:
        listed = self.classification
        require(listed != ("calibration",), "classification", listed, "expected another one too")
        names = {field: metric_names(outcome) for field, outcome in KINDS.items()}
        names["every_epoch"] = [name for listed in names.values() for name in listed]
        for field, allowed in names.items():
            require_each_once(field, getattr(self, field))
            for name in getattr(self, field):
                why = "its file has no resampled(outcome: Classified) or (outcome: Answered)"
                exists = (FOLDER / f"{name}.py").is_file() and name not in names["every_epoch"]
                require(name in allowed, field, name, why if exists else f"expected one of {', '.join(allowed)}")
        for field in KINDS:
            has_curve = not set(self.every_epoch).isdisjoint(getattr(self, field))
            require(has_curve, "every_epoch", self.every_epoch, f"expected at least one of metrics.{field}")
        return self


class EvaluateParams(Params):
    """What stages/evaluate.py reads."""

    finetune: Grid
    metrics: MetricSettings
