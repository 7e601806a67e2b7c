"""Scores: predictions/ + the data → reports/metrics.json, reports/scores.json, reports/curves/tasks/<task>.csv.

Scores every listed method and seed at the kept epoch, next to baselines and the model before training. metrics.json,
which is tracked by git, has the headline figures and the number of flags, with six digits; scores.json has everything,
with twelve. A task with a test split is scored on it too, as `<task>-test`. No model is loaded.

    python -m stages.evaluate
"""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from retrace.core.errors import InputError, exit_cleanly
from retrace.core.files import STEADY_DIGITS, rounded, write_json, write_text
from retrace.core.guard import guarded
from retrace.core.paths import has_test, on_test
from retrace.core.records import timed
from retrace.evaluation.assessment import KINDS, AnyTask, MethodRun, assess
from retrace.evaluation.outcomes import Scoring
from retrace.evaluation.records import DETAILS, METRICS, Details, Metrics, TaskDetails
from retrace.evaluation.settings import EvaluateParams
from retrace.results.grid import PREDICTIONS, Grid
from retrace.results.predictions import read_drawn, read_epochs, write_baselines

CURVES = Path("reports/curves/tasks")


def main() -> None:
    params = EvaluateParams.read()
    settings, grid = params.metrics, params.finetune
    data = [grid.data_of(task) for task in grid.all_tasks]
    with guarded("evaluate", [*data, PREDICTIONS], params.settings), timed("evaluate"):
        tasks: dict[str, TaskDetails] = {}
        for name in grid.all_tasks:
            listed = getattr(settings, grid.kind_of(name))
            task = read_task(name, grid, ("train", "dev"))
            runs = read_runs(name, grid, task)
            write_curves(name, task, runs, Scoring([metric for metric in listed if metric in settings.every_epoch]))
            scored = {name: (task, runs)}
            if has_test(grid.data_of(name)):
                tested = read_task(name, grid, ("train", "dev", "test"))
                scored[on_test(name)] = tested, read_runs(name, grid, tested)
            for title, (task, runs) in scored.items():
                tasks[title] = assess(task, Scoring(listed), runs, settings)
                write_baselines(title, {baseline: outcome.decided for baseline, outcome in task.baselines.items()})
        details, metrics = Details(tasks=tasks), Metrics(tasks={name: task.metrics for name, task in tasks.items()})
        # The file with all figures comes first: if any is NaN, writing fails here, and neither file is written.
        write_json(DETAILS, rounded(details.to_json(), STEADY_DIGITS))
        write_json(METRICS, rounded(metrics.to_json()))
        print_headlines(details)


def read_task(name: str, grid: Grid, splits: Sequence[str]) -> AnyTask:
    """A task's examples; baselines are fitted to those that the first seed's models were trained on."""
    drawn = read_drawn(PREDICTIONS / grid.cells_of(name)[0].path)
    return KINDS[grid.kind_of(name)].read(grid.data_of(name), splits, drawn)


def read_runs(name: str, grid: Grid, task: AnyTask) -> list[MethodRun]:
    """The predictions of every method with every seed for the split of the task that is scored.

    Raises InputError if they are not predictions for the task's examples, for instance because the data changed.
    """
    runs = []
    for cell in grid.cells_of(name):
        epochs = read_epochs(PREDICTIONS / cell.path, grid.kind_of(name), task.split)
        if not all(task.fits(epoch.rows) for epoch in epochs):
            raise InputError(f"{PREDICTIONS / cell.path}: these predictions are for other examples; run dvc repro")
        runs.append(MethodRun(cell.method, cell.seed, epochs))
    return runs


def write_curves(name: str, task: AnyTask, runs: Sequence[MethodRun], scoring: Scoring) -> None:
    """Write a task's learning curves: losses and metrics by method, seed and epoch."""
    rows = [
        {"method": run.method, "seed": run.seed, "epoch": epoch.number}
        | {"training_loss": epoch.training_loss, "validation_loss": epoch.validation_loss}
        | scoring.score(task.outcome(epoch.rows))
        for run in runs
        for epoch in run.epochs
    ]
    write_text(CURVES / f"{name}.csv", pd.DataFrame(rows).to_csv(index=False, lineterminator="\n"))


def print_headlines(details: Details) -> None:
    """Print each method's headline figures with their intervals."""
    for name, task in details.tasks.items():
        for method, found in task.methods.items():
            ends = found.intervals
            known = [headline for headline in task.headlines if headline in ends]
            shown = (f"{h} {found.figures[h]:.4g} ({ends[h]['low']:.4g}–{ends[h]['high']:.4g})" for h in known)
            print(f"{name} {method}: " + "  ".join(shown))


if __name__ == "__main__":
    exit_cleanly(main)
