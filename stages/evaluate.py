"""Scores: predictions/ + data/<source> → reports/metrics.json and reports/curves/{sst2,squad}.csv.

Every listed method and seed is scored at the epoch with the lowest validation loss, beside baselines
that need no language model; the curves have every epoch. No model is loaded.

    accelerate launch --config_file launch/one.yaml -m stages.evaluate
"""

import shutil
from pathlib import Path
from typing import Any

from stages.corpus.glue import read_sentences
from stages.corpus.source import questions_path, sentences_path, source_folder
from stages.corpus.squad import read_questions
from stages.harness.errors import exit_cleanly
from stages.harness.guard import guarded
from stages.harness.records import write_json, write_text
from stages.harness.settings import build, check_value, read_params
from stages.metrics.curves import as_csv
from stages.metrics.scoring import ClassificationScores, ReadingScores, TaskScores, mean_over_seeds
from stages.metrics.settings import ScoreSettings
from stages.tasks.predictions import best_epoch, read_epochs

PREDICTIONS, METRICS, CURVES = Path("predictions"), Path("reports/metrics.json"), Path("reports/curves")


def main() -> None:
    params = read_params()
    settings = build(ScoreSettings, params, "scores")
    source = source_folder(check_value(params, "data", str))
    methods = check_value(params, "finetune.methods", list[str])
    seeds = check_value(params, "finetune.seeds", list[int])
    prune(methods, seeds)
    with guarded("evaluate", [source, PREDICTIONS], ["data", "scores", "finetune"]):
        sentences = [read_sentences(sentences_path(source, part)) for part in ("train", "dev")]
        questions = read_questions(questions_path(source, "dev"))
        report = {}
        for task, scores in {
            "sst2": ClassificationScores(settings.sst2, settings.margin, *sentences),
            "squad": ReadingScores(settings.squad, settings.margin, questions),
        }.items():
            report[task], curves = score_task(task, scores, methods, seeds)
            write_text(CURVES / f"{task}.csv", as_csv(curves))
        write_json(METRICS, report)


def prune(methods: list[str], seeds: list[int]) -> None:
    """Remove predictions of methods and seeds that params.yaml no longer lists; DVC leaves them lying."""
    for cell in PREDICTIONS.glob("*/*/*"):
        if cell.parent.name not in methods or cell.name not in map(str, seeds):
            shutil.rmtree(cell)
            if not any(cell.parent.iterdir()):
                cell.parent.rmdir()


def score_task(
    task: str, scores: TaskScores, methods: list[str], seeds: list[int]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The task's part of the report, and its curves: one row a method, seed and epoch."""
    report: dict[str, Any] = {"baselines": scores.baselines()}
    curves: list[dict[str, Any]] = []
    for method in methods:
        by_seed = {}
        for seed in seeds:
            epochs = read_epochs(PREDICTIONS / task / method / str(seed))
            for epoch in epochs:
                losses = {"training_loss": epoch.training_loss, "validation_loss": epoch.validation_loss}
                at = {"method": method, "seed": seed, "epoch": epoch.number}
                curves.append(at | losses | scores.of(epoch.rows))
            best = best_epoch(epochs)
            figures = {"epoch": best.number, "loss": best.validation_loss, **scores.of(best.rows)}
            by_seed[str(seed)] = figures | {"flags": scores.flags(best.rows)}
            print(f"{task} {method} {seed}: " + "  ".join(f"{k} {v:.4g}" for k, v in scores.of(best.rows).items()))
        report[method] = {**by_seed, "mean": mean_over_seeds(by_seed.values())}
    return report, curves


if __name__ == "__main__":
    exit_cleanly(main)
