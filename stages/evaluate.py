"""Scores: predictions/ + the data → reports/metrics.json, reports/scores.json, reports/curves/tasks/<task>.csv.

Every listed method and seed is scored at the epoch that was kept, beside baselines and the model before training.
metrics.json has the figures and flags, to the six digits that git keeps; scores.json the same with twelve, intervals,
comparisons of methods and breakdowns. A task with a test split is scored on it too, as `<task>-test`. No model is
loaded.

    accelerate launch --config_file launch/one.yaml -m stages.evaluate
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from retrace.core.errors import exit_cleanly
from retrace.core.files import STEADY_DIGITS, rounded, write_json, write_text
from retrace.core.guard import guarded
from retrace.core.paths import QUESTIONS, TASKS, has_test, on_test, source_folder
from retrace.evaluation.assessment import KINDS, Assessment, ScoredTask, assess
from retrace.evaluation.outcomes import Epoch, MethodRun
from retrace.evaluation.records import DETAILS, METRICS, Details, Metrics
from retrace.evaluation.scoring import Scoring
from retrace.evaluation.settings import EvaluateParams, MetricSettings
from retrace.results.grid import Grid, Kind
from retrace.results.predictions import Epoch as Predicted
from retrace.results.predictions import read_drawn, read_epochs, read_tested

PREDICTIONS, CURVES = Path("predictions"), Path("reports/curves/tasks")


def main() -> None:
    params = EvaluateParams.read()
    settings, grid, source = params.metrics, params.finetune, source_folder(params.data)
    with guarded("evaluate", [source, TASKS, QUESTIONS, PREDICTIONS], params.settings):
        assessed: dict[str, Assessment] = {}
        for name in grid.all_tasks:
            task = read_task(source, name, grid, ("train", "dev"))
            runs = read_runs(name, grid, task, read_epochs)
            write_curves(name, runs, scoring_of(settings, grid.kind_of(name), settings.every_epoch))
            assessed[name] = score(name, task, runs, grid.kind_of(name), settings)
            if has_test(source, name):
                task = read_task(source, name, grid, ("train", "dev", "test"))
                runs = read_runs(name, grid, task, read_tested)
                assessed[on_test(name)] = score(on_test(name), task, runs, grid.kind_of(name), settings)
        details = Details(tasks={name: assessment.details for name, assessment in assessed.items()})
        metrics = Metrics(
            tasks={name: task.metrics for name, task in details.tasks.items()},
            flags={name: assessment.flags for name, assessment in assessed.items() if assessment.flags},
        )
        write_json(METRICS, rounded(metrics.to_json()))
        write_json(DETAILS, rounded(details.to_json(), STEADY_DIGITS))
        for cell in unlisted(grid):
            print(f"{cell}: not scored, as finetune in params.yaml does not list it; no fresh clone has this folder")


def unlisted(grid: Grid) -> list[Path]:
    """Predictions of tasks, methods and seeds that params.yaml does not list; DVC leaves them in place."""
    found = sorted(cell for cell in PREDICTIONS.glob("*/*/*") if cell.is_dir())
    return [cell for cell in found if cell.relative_to(PREDICTIONS).as_posix() not in grid.cells]


def read_task(source: Path, name: str, grid: Grid, splits: Sequence[str]) -> ScoredTask:
    """A task's examples; baselines are trained on those that the models of the first seed were trained on."""
    drawn = read_drawn(PREDICTIONS / name / grid.methods_of(name)[0] / str(grid.seeds[0]))
    return KINDS[grid.kind_of(name)].read(source, name, splits, drawn)


def read_runs(
    name: str, grid: Grid, task: ScoredTask, read: Callable[[Path, Kind], Sequence[Predicted]]
) -> list[MethodRun[Any]]:
    """The decisions of every method with every seed; `read` reads a run's folder."""
    return [
        MethodRun(method, seed, tuple(
            Epoch(epoch.number, epoch.training_loss, epoch.validation_loss, epoch.kept, task.outcome(epoch.rows))
            for epoch in read(PREDICTIONS / name / method / str(seed), grid.kind_of(name))
        ))
        for method in grid.methods_of(name) for seed in grid.seeds
    ]  # fmt: skip


def scoring_of(settings: MetricSettings, kind: Kind, among: Sequence[str] | None = None) -> Scoring:
    """The metrics of a kind of task, or those `among` others."""
    return Scoring([name for name in getattr(settings, kind) if among is None or name in among])


def write_curves(name: str, runs: Sequence[MethodRun[Any]], scoring: Scoring) -> None:
    """Write a task's learning curves: losses and metrics by method, seed and epoch."""
    rows = [
        {"method": run.method, "seed": run.seed, "epoch": epoch.number}
        | {"training_loss": epoch.training_loss, "validation_loss": epoch.validation_loss}
        | scoring.score(epoch.outcome)
        for run in runs
        for epoch in run.epochs
    ]
    write_text(CURVES / f"{name}.csv", pd.DataFrame(rows).to_csv(index=False, lineterminator="\n"))


def score(
    name: str, task: ScoredTask, runs: Sequence[MethodRun[Any]], kind: Kind, settings: MetricSettings
) -> Assessment:
    """Score a task, and print each method's headline figures."""
    assessment = assess(task, scoring_of(settings, kind), runs, settings)
    details = assessment.details
    for method, metrics in details.metrics.methods.items():
        ends = details.methods[method].intervals
        shown = (f"{h} {metrics.mean[h]:.4g} ({ends[h]['low']:.4g}–{ends[h]['high']:.4g})" for h in details.headlines)
        print(f"{name} {method}: " + "  ".join(shown))
    return assessment


if __name__ == "__main__":
    exit_cleanly(main)
