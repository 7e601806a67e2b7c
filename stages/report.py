"""The report: metrics, curves, runs and predictions → reports/report.html, reports/report.md, reports/figures.

The HTML stands alone: it can be mailed or put on a server as one file.

    accelerate launch --config_file launch/one.yaml -m stages.report
"""

import csv
from pathlib import Path
from typing import Any

from stages.corpus.checkpoint import CHECKPOINT, checkpoint_facts
from stages.corpus.examples import SST2, read_classes, read_examples
from stages.corpus.source import TASKS, questions_path, source_folder, task_folder
from stages.corpus.squad import read_questions
from stages.harness.errors import exit_cleanly
from stages.harness.guard import guarded
from stages.harness.records import read_json, write_text, written_folder
from stages.harness.settings import build, check_value, profile_key, read_params, section
from stages.metrics.decisions import answers_of, decided_class
from stages.metrics.trials import kept_epoch
from stages.nets.parameters import parameters_by_module
from stages.pages.content import Figure, Section
from stages.pages.data_page import data_section
from stages.pages.html import as_html
from stages.pages.markdown import as_markdown
from stages.pages.perplexity_page import perplexity_lines, perplexity_section
from stages.pages.samples_page import answered_table, classified_table
from stages.pages.scores_page import health_lines, scores_section
from stages.pages.settings import ReportSettings
from stages.pages.settings_page import model_section, settings_section
from stages.tasks.matrix import SQUAD, Matrix
from stages.tasks.predictions import read_epochs

REPORTS, PREDICTIONS, MODEL = Path("reports"), Path("predictions"), Path("models/pretrained")
TITLE = "Retrace report"
SCORES = ("metrics", "scores", "perplexity")
TITLES: dict[str, str] = {"sst2": "Sentiment (SST-2)", "squad": "Questions (SQuAD)"}


def main() -> None:
    params = read_params()
    settings = build(ReportSettings, params, "report")
    source = source_folder(check_value(params, "data", str))
    profile = profile_key(params, "").removesuffix(".")
    inputs = [source, TASKS, CHECKPOINT, PREDICTIONS, MODEL, *(REPORTS / f"{name}.json" for name in SCORES)]
    keys = [
        "data",
        "profile",
        "finetune",
        "report",
        "lr",
        "seed",
        "family",
        "model",
        "precision",
        "squad",
        profile,
        source.name,
    ]
    with guarded("report", [*inputs, REPORTS / "curves", REPORTS / "runs"], keys):
        metrics, perplexity = (read_json(REPORTS / f"{name}.json") for name in ("metrics", "perplexity"))
        sections = [
            *score_sections(metrics),
            perplexity_section(perplexity, read_curve("pretrain")),
            samples(params, source, settings.samples),
            data_section(read_json(source / "card.json"), read_task_cards(params)),
            model_section(checkpoint_facts(), parameters_by_module(MODEL), read_runs()),
            settings_section(params, section(params, profile)),
        ]
        figures = [block for part in sections for block in part.blocks if isinstance(block, Figure)]
        with written_folder(REPORTS / "figures") as folder:
            for figure in figures:
                write_text(folder / f"{figure.name}.svg", figure.svg)
        write_text(REPORTS / "report.md", as_markdown(TITLE, sections, "figures"))
        write_text(REPORTS / "report.html", as_html(TITLE, sections))
    print(f"the report is in {REPORTS / 'report.html'} and {REPORTS / 'report.md'}")
    print(health_line(metrics, perplexity))


def score_sections(metrics: dict[str, Any]) -> list[Section]:
    """The scores of every task."""
    details = read_json(REPORTS / "scores.json")
    return [
        scores_section(task, TITLES.get(task) or task, metrics[task], details[task], metrics["health"].get(task, {}),
                       read_curve(f"tasks/{task}"))
        for task in details
    ]  # fmt: skip


def health_line(metrics: dict[str, Any], perplexity: dict[str, Any]) -> str:
    """What is wrong with the models, in one line."""
    lines = [*perplexity_lines(perplexity), *health_lines(metrics["health"])]
    return f"health: {len(lines)} flags: " + "; ".join(lines) if lines else "health: no flags"


def samples(params: dict[str, Any], source: Path, count: int) -> Section:
    """What each method said at the epoch that was kept, from the first seed."""
    tables = []
    matrix = build(Matrix, params, "finetune")
    for task in matrix.classification:
        decided = {method: [decided_class(row) for row in rows] for method, rows in best_rows(matrix, task).items()}
        tables.append(classified_table(read_examples(source, task, "dev"), read_classes(source, task), decided, count))
    if SQUAD in matrix.tasks:
        answers = {method: answers_of(rows) for method, rows in best_rows(matrix, SQUAD).items()}
        tables.append(answered_table(read_questions(questions_path(source, "dev")), answers, count))
    return Section("Sample predictions", tables)


def best_rows(matrix: Matrix, task: str) -> dict[str, list[dict[str, Any]]]:
    """The rows of predictions of each method."""
    folder, seed = PREDICTIONS / task, str(matrix.seeds[0])
    return {method: kept_epoch(read_epochs(folder / method / seed)).rows for method in matrix.methods_of(task)}


def read_curve(name: str) -> list[dict[str, str]]:
    """The rows of a learning curve, as text."""
    path = REPORTS / "curves" / f"{name}.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def read_task_cards(params: dict[str, Any]) -> dict[str, Any]:
    """What was found in the classification tasks that are trained; SST-2 is on the source's card."""
    tasks = build(Matrix, params, "finetune").classification
    return {task: read_json(task_folder(task) / "card.json") for task in tasks if task != SST2}


def read_runs() -> dict[str, dict[str, Any]]:
    """Time and memory of each training run, by name; pretraining first."""
    folder = REPORTS / "runs"
    paths = sorted(folder.rglob("*.json"), key=lambda path: (len(path.parts), path))
    return {" ".join(path.relative_to(folder).with_suffix("").parts): read_json(path) for path in paths}


if __name__ == "__main__":
    exit_cleanly(main)
