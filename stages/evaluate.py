"""Scores: predictions/ + the data → reports/metrics.json, reports/scores.json, reports/curves/tasks/<task>.csv.

Every listed method and seed is scored at the epoch that was kept, beside baselines that need no language model and
the model before training. metrics.json has the figures and the health flags, to the six digits that git keeps;
scores.json the same with twelve, their intervals, the comparison of methods and what is behind the figures. Where
a task has a test split, `<task>-test` there is the same of it, which chose no epoch. No model is loaded.

    accelerate launch --config_file launch/one.yaml -m stages.evaluate
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from retrace.core.errors import exit_cleanly
from retrace.core.files import STEADY_DIGITS, rounded, write_json, write_text
from retrace.core.guard import guarded
from retrace.core.paths import TASKS, has_test, on_test, questions_path, source_folder
from retrace.datasets.examples import read_classes, read_examples
from retrace.datasets.squad import read_questions
from retrace.evaluation.assessment import Assessment, ScoredTask, assess
from retrace.evaluation.classification import ClassificationTask
from retrace.evaluation.outcomes import Answered, Classified, Epoch, MethodRun
from retrace.evaluation.question_answering import QuestionAnsweringTask
from retrace.evaluation.records import DETAILS, METRICS, Details, Metrics
from retrace.evaluation.scoring import Scoring
from retrace.evaluation.settings import EvaluateParams, MetricSettings
from retrace.results.grid import SQUAD, Grid, Kind
from retrace.results.predictions import Epoch as Answers
from retrace.results.predictions import read_drawn, read_epochs, read_tested

PREDICTIONS, CURVES = Path("predictions"), Path("reports/curves/tasks")
PARTS = ("train", "dev")


def main() -> None:
    params = EvaluateParams.read()
    settings, grid, source = params.metrics, params.finetune, source_folder(params.data)
    classes = scorings(settings, settings.classification, "metrics.classification", Classified)
    answers = scorings(settings, settings.question_answering, "metrics.question_answering", Answered)
    with guarded("evaluate", [source, TASKS, PREDICTIONS], params.settings):
        assessed = {}
        for name in grid.all_tasks:
            chosen = answers if name == SQUAD else classes
            task = read_task(source, name, grid)
            trials = read_trials(name, grid, task)
            write_curves(name, trials, chosen[1])
            assessed[name] = score(name, task, trials, chosen[0], settings)
            if has_test(source, name):
                task = read_task(source, name, grid, test=True)
                trials = read_trials(name, grid, task, read_tested)
                assessed[on_test(name)] = score(on_test(name), task, trials, chosen[0], settings)
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
    """Predictions of tasks, methods and seeds that params.yaml does not list: DVC leaves them lying."""
    found = sorted(cell for cell in PREDICTIONS.glob("*/*/*") if cell.is_dir())
    return [cell for cell in found if cell.relative_to(PREDICTIONS).as_posix() not in grid.cells]


def read_task(source: Path, name: str, grid: Grid, test: bool = False) -> ClassificationTask | QuestionAnsweringTask:
    """The examples of a task, for training and for validation or, where wanted, for the test.

    Of its training examples the baselines get those that the models of the first seed were given.
    """
    parts = (*PARTS, "test") if test else PARTS
    if name == SQUAD:
        return QuestionAnsweringTask(*(read_questions(questions_path(source, part)) for part in parts))
    drawn = read_drawn(PREDICTIONS / name / grid.methods[0] / str(grid.seeds[0]))
    examples = [read_examples(source, name, part) for part in parts]
    return ClassificationTask(read_classes(source, name), *examples, drawn=drawn)


def read_trials(
    name: str, grid: Grid, task: ScoredTask,
    read: Callable[[Path, Kind], Sequence[Answers]] = read_epochs,
) -> list[MethodRun[Any]]:  # fmt: skip
    """The predictions of every method with every seed; `read` reads a run's folder."""
    return [
        MethodRun(method, seed, tuple(
            Epoch(epoch.number, epoch.training_loss, epoch.validation_loss, epoch.kept, task.outcome(epoch.rows))
            for epoch in read(PREDICTIONS / name / method / str(seed), grid.kind_of(name))
        ))
        for method in grid.methods_of(name) for seed in grid.seeds
    ]  # fmt: skip


def scorings(settings: MetricSettings, names: Sequence[str], key: str, kind: Any) -> tuple[Scoring, Scoring]:
    """All scores of a kind of task, and those of its learning curves."""
    return Scoring(names, key, kind), Scoring([name for name in names if name in settings.every_epoch], key, kind)


def write_curves(name: str, trials: Sequence[MethodRun[Any]], scoring: Scoring) -> None:
    """Write a task's learning curves."""
    curves = pd.DataFrame([row for trial in trials for row in curve(trial, scoring)])
    write_text(CURVES / f"{name}.csv", curves.to_csv(index=False, lineterminator="\n"))


def score(
    name: str, task: Any, trials: Sequence[MethodRun[Any]], scoring: Scoring, settings: MetricSettings
) -> Assessment:
    """Score a task and say how each method did."""
    assessment = assess(task, scoring, trials, settings)
    details = assessment.details
    for method, metrics in details.metrics.methods.items():
        ends = details.methods[method].intervals
        shown = (f"{h} {metrics.mean[h]:.4g} ({ends[h]['low']:.4g}–{ends[h]['high']:.4g})" for h in details.headlines)
        print(f"{name} {method}: " + "  ".join(shown))
    return assessment


def curve(trial: MethodRun[Any], scoring: Scoring) -> list[dict[str, Any]]:
    """One row an epoch: losses and the scores that are computed after each."""
    return [
        {"method": trial.method, "seed": trial.seed, "epoch": epoch.number}
        | {"training_loss": epoch.training_loss, "validation_loss": epoch.validation_loss}
        | scoring.score(epoch.outcome)
        for epoch in trial.epochs
    ]


if __name__ == "__main__":
    exit_cleanly(main)
