"""Scores: predictions/ + the data → reports/metrics.json, reports/scores.json, reports/curves/tasks/<task>.csv.

Every listed method and seed is scored at the epoch that was kept, beside baselines that need no language model and
the model before training. metrics.json has the figures and the health flags; scores.json their intervals, the
comparison of methods and what is behind the figures. No model is loaded.

    accelerate launch --config_file launch/one.yaml -m stages.evaluate
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from stages.corpus.examples import read_classes, read_examples
from stages.corpus.source import TASKS, questions_path, source_folder
from stages.corpus.squad import read_questions
from stages.harness.errors import exit_cleanly
from stages.harness.guard import guarded
from stages.harness.pipeline import check_questions
from stages.harness.records import write_json, write_text
from stages.harness.settings import build, check_value, read_params, values_of
from stages.metrics.assessment import Assessment, assess
from stages.metrics.classification import ClassificationTask
from stages.metrics.curves import as_csv
from stages.metrics.outcomes import Answered, Classified
from stages.metrics.reading import ReadingTask
from stages.metrics.scoring import Scoring
from stages.metrics.settings import ScoreSettings
from stages.metrics.trials import Epoch, Trial
from stages.tasks.matrix import SQUAD, Matrix
from stages.tasks.predictions import read_epochs

PREDICTIONS, CURVES = Path("predictions"), Path("reports/curves/tasks")
METRICS, DETAILS = Path("reports/metrics.json"), Path("reports/scores.json")
PARTS = ("train", "dev")


def main() -> None:
    params = read_params()
    settings = build(ScoreSettings, params, "scores")
    source = source_folder(check_value(params, "data", str))
    matrix = build(Matrix, params, "finetune")
    check_questions(matrix.squad)
    classes = scorings(settings, settings.classification, "scores.classification", Classified)
    answers = scorings(settings, settings.squad, "scores.squad", Answered)
    with guarded("evaluate", [source, TASKS, PREDICTIONS], values_of(params, ["data", "scores", "finetune"])):
        assessed = {}
        for name in matrix.tasks:
            task = read_task(source, name)
            trials = read_trials(name, matrix, task.outcome)
            assessed[name] = score(name, task, trials, answers if name == SQUAD else classes, settings)
        health = {name: assessment.health for name, assessment in assessed.items() if assessment.health}
        write_json(METRICS, {name: a.figures for name, a in assessed.items()} | {"health": health})
        write_json(DETAILS, {name: assessment.details for name, assessment in assessed.items()})
        for cell in unlisted(matrix):
            print(f"{cell}: not scored, as finetune in params.yaml does not list it; no fresh clone has this folder")


def unlisted(matrix: Matrix) -> list[Path]:
    """Predictions of tasks, methods and seeds that params.yaml does not list: DVC leaves them lying."""
    found = sorted(cell for cell in PREDICTIONS.glob("*/*/*") if cell.is_dir())
    return [cell for cell in found if cell.relative_to(PREDICTIONS).as_posix() not in matrix.cells]


def read_task(source: Path, name: str) -> ClassificationTask | ReadingTask:
    """The examples of a task, for training and for validation."""
    if name == SQUAD:
        return ReadingTask(*(read_questions(questions_path(source, part)) for part in PARTS))
    return ClassificationTask(read_classes(source, name), *(read_examples(source, name, part) for part in PARTS))


def read_trials(task: str, matrix: Matrix, outcome: Callable[[Sequence[Mapping[str, Any]]], Any]) -> list[Trial[Any]]:
    """What every method said from every seed."""
    return [
        Trial(method, seed, tuple(
            Epoch(epoch.number, epoch.training_loss, epoch.validation_loss, epoch.kept, outcome(epoch.rows))
            for epoch in read_epochs(PREDICTIONS / task / method / str(seed))
        ))
        for method in matrix.methods_of(task) for seed in matrix.seeds
    ]  # fmt: skip


def scorings(settings: ScoreSettings, names: Sequence[str], key: str, kind: Any) -> tuple[Scoring, Scoring]:
    """All scores of a kind of task, and those of its learning curves."""
    return Scoring(names, key, kind), Scoring([name for name in names if name in settings.curves], key, kind)


def score(
    name: str, task: Any, trials: Sequence[Trial[Any]], chosen: tuple[Scoring, Scoring], settings: ScoreSettings
) -> Assessment:
    """Score a task, write its learning curves and say how each method did."""
    every, drawn = chosen
    write_text(CURVES / f"{name}.csv", as_csv([row for trial in trials for row in curve(trial, drawn)]))
    assessment = assess(task, every, trials, settings)
    headlines = assessment.details["headlines"]
    for method in dict.fromkeys(trial.method for trial in trials):
        figures, intervals = assessment.figures[method]["mean"], assessment.details["methods"][method]["intervals"]
        shown = (f"{h} {figures[h]:.4g} ({intervals[h]['low']:.4g}–{intervals[h]['high']:.4g})" for h in headlines)
        print(f"{name} {method}: " + "  ".join(shown))
    return assessment


def curve(trial: Trial[Any], scoring: Scoring) -> list[dict[str, Any]]:
    """One row an epoch: losses and the scores that are computed after each."""
    return [
        {"method": trial.method, "seed": trial.seed, "epoch": epoch.number}
        | {"training_loss": epoch.training_loss, "validation_loss": epoch.validation_loss}
        | scoring.score(epoch.outcome)
        for epoch in trial.epochs
    ]


if __name__ == "__main__":
    exit_cleanly(main)
