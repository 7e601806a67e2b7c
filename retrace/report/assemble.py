"""Parts of a report, from what the stages wrote: scores, samples and runs; and the report as files."""

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from retrace.core.files import atomic_folder, read_json, write_text
from retrace.core.paths import ON_TEST, card_path, has_test, on_test, questions_path
from retrace.core.settings import build
from retrace.datasets.examples import read_classes, read_examples
from retrace.datasets.squad import read_questions
from retrace.evaluation.outcomes import decided_answers, logits_of
from retrace.report.blocks import Figure, Section, Table
from retrace.report.data import answered_table, classified_table
from retrace.report.perplexity import perplexity_lines
from retrace.report.render import as_html, as_markdown
from retrace.report.scores import health_lines, scores_section
from retrace.report.settings import sample_places
from retrace.results.grid import Grid, Kind
from retrace.results.predictions import kept_epoch, read_epochs, read_tested

MOST_FLAGS = 10  # of which the last line of a run tells
REPORTS, PREDICTIONS = Path("reports"), Path("predictions")
WRITTEN = f"the report is in {REPORTS / 'report.html'} and {REPORTS / 'report.md'}"
TITLES: dict[str, str] = {"sst2": "Sentiment (SST-2)", "squad": "Questions (SQuAD)"}

Rows = dict[str, pd.DataFrame]  # predictions by method
CHOSEN_BY = (
    "These figures are of the validation set, by whose loss the epoch was chosen unless its settings keep the last. "
    "Those of the test set follow."
)
TESTED = (
    "These figures are of the test set. It chose nothing: it was answered before training, and by the weights of the "
    "epoch that was kept."
)


def write_report(title: str, sections: Sequence[Section], to: Path = REPORTS) -> None:
    """Write report.html, report.md and figures into the folder."""
    figures = [block for part in sections for block in part.blocks if isinstance(block, Figure)]
    with atomic_folder(to / "figures") as folder:
        for figure in figures:
            write_text(folder / f"{figure.name}.svg", figure.svg)
    write_text(to / "report.md", as_markdown(title, sections, "figures"))
    write_text(to / "report.html", as_html(title, sections))


def score_sections(metrics: Mapping[str, Any], details: Mapping[str, Any]) -> list[Section]:
    """The scores of every task, from metrics.json and scores.json; those of its test set, if any, follow."""
    return [
        scores_section(task, title_of(task), metrics[task], details[task], metrics["health"].get(task, {}),
                       [] if task.endswith(ON_TEST) else read_curve(f"tasks/{task}"), _split_of(task, details))
        for task in details
    ]  # fmt: skip


def _split_of(task: str, details: Mapping[str, Any]) -> str:
    """Which of its splits a task's figures are of, where it has two of them."""
    if task.endswith(ON_TEST):
        return TESTED
    return CHOSEN_BY if on_test(task) in details else ""


def title_of(task: str) -> str:
    """What a task, or the figures on its test set, is called in headings."""
    if task.endswith(ON_TEST):
        return f"{title_of(task.removesuffix(ON_TEST))}, test set"
    return TITLES.get(task, task)


def health_line(metrics: Mapping[str, Any], perplexity: Mapping[str, Any]) -> str:
    """What is wrong with the models, in one line; `perplexity` is empty where there is no language model."""
    lines = [*perplexity_lines(perplexity), *health_lines(metrics["health"])]
    if not lines:
        return "health: no flags"
    said = lines[:MOST_FLAGS]
    if len(lines) > MOST_FLAGS:
        said.append(f"and {len(lines) - MOST_FLAGS} more, which the report says")
    return f"health: {len(lines)} flag{'s' if len(lines) > 1 else ''}: " + "; ".join(said)


def samples_section(params: Mapping[str, Any], source: Path, first: int | None = None) -> Section:
    """What each method said at the epoch that was kept, from the first seed; on the test set, where there is one.

    Shown are the `first` examples, or, where that is None, some that are spread evenly over the data.
    """
    tables: list[str | Table] = [f"{'Spread evenly over' if first is None else 'The first of'} each task's data."]
    grid = build(Grid, params, "finetune")
    for task in grid.all_tasks:
        part, by_method = kept_rows(grid, source, task)
        tables += [f"{title_of(on_test(task))}:"] if part == "test" else []
        tables.append(SAMPLES[grid.kind_of(task)](source, task, part, by_method, first))
    return Section("Sample predictions", tables)


def _classified(source: Path, task: str, part: str, by_method: Rows, first: int | None) -> Table:
    decided = {method: logits_of(rows).argmax(axis=1).tolist() for method, rows in by_method.items()}
    examples, classes = read_examples(source, task, part), read_classes(source, task)
    return classified_table(examples, classes, decided, sample_places(len(examples), first))


def _answered(source: Path, task: str, part: str, by_method: Rows, first: int | None) -> Table:
    answers = {method: decided_answers(rows) for method, rows in by_method.items()}
    questions = read_questions(questions_path(source, part, task))
    return answered_table(questions, answers, sample_places(len(questions), first))


SAMPLES: Mapping[Kind, Callable[[Path, str, str, Rows, int | None], Table]] = {
    "classification": _classified,
    "question_answering": _answered,
}


def kept_rows(grid: Grid, source: Path, task: str) -> tuple[str, Rows]:
    """The part that was answered last, test or else dev, and the rows of predictions of each method."""
    part, read = ("test", read_tested) if has_test(source, task) else ("dev", read_epochs)
    folder, seed = PREDICTIONS / task, str(grid.seeds[0])
    epochs = {method: read(folder / method / seed, grid.kind_of(task)) for method in grid.methods_of(task)}
    return part, {method: kept_epoch(of).rows for method, of in epochs.items()}


def read_curve(name: str) -> list[dict[str, str]]:
    """The rows of a learning curve, as text."""
    path = REPORTS / "curves" / f"{name}.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def read_task_cards(params: Mapping[str, Any]) -> dict[str, Any]:
    """The cards of further tasks that are trained; SST-2 and SQuAD are on the source's card."""
    tasks = build(Grid, params, "finetune").all_tasks
    return {task: read_json(card_path(task)) for task in tasks if task not in TITLES}


def read_runs(params: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Time and memory of pretraining and of each cell of the grid, by name."""
    paths = {path.relative_to(REPORTS / "runs").with_suffix(""): path for path in (REPORTS / "runs").rglob("*.json")}
    listed = build(Grid, params, "finetune").cells  # DVC leaves those of other methods lying
    names = sorted(name for name in paths if len(name.parts) == 1 or name.as_posix() in listed)
    names.sort(key=lambda name: len(name.parts))
    return {" ".join(name.parts): read_json(paths[name]) for name in names}
