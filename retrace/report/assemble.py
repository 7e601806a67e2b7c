"""Parts of a report, from what the stages wrote: scores, samples and runs; and the report as files."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from retrace.core.files import atomic_folder, read_json, write_text
from retrace.core.paths import ON_TEST, card_path, has_test, on_test, questions_path
from retrace.core.records import RunRecord
from retrace.core.settings import build
from retrace.datasets.examples import read_classes, read_examples
from retrace.datasets.squad import read_questions
from retrace.evaluation.outcomes import decided_answers, logits_of
from retrace.evaluation.records import Details, Metrics
from retrace.perplexity.measures import PerplexityReport
from retrace.report.blocks import Figure, Section, Table
from retrace.report.data import answered_table, classified_table
from retrace.report.perplexity import perplexity_lines
from retrace.report.render import as_html, as_markdown
from retrace.report.scores import flag_lines, scores_section
from retrace.report.settings import sample_places
from retrace.results.grid import Grid, Kind
from retrace.results.predictions import kept_epoch, read_epochs, read_tested

MOST_FLAGS = 10  # of which the last line of a run tells
REPORTS, PREDICTIONS = Path("reports"), Path("predictions")
WRITTEN = f"the report is in {REPORTS / 'report.html'} and {REPORTS / 'report.md'}"
Predictions = dict[str, pd.DataFrame]  # by method
TITLES: dict[str, str] = {"sst2": "Sentiment (SST-2)", "squad": "Questions (SQuAD)"}

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


def score_sections(metrics: Metrics, details: Details) -> list[Section]:
    """The scores of every task; those of its test set, if any, follow."""
    sections = []
    for task, found in details.tasks.items():
        is_test = task.endswith(ON_TEST)
        split = TESTED if is_test else CHOSEN_BY if on_test(task) in details.tasks else ""
        curve = None if is_test else read_curve(f"tasks/{task}")
        flags = metrics.flags.get(task, {})
        sections.append(scores_section(task, title_of(task), metrics.tasks[task], found, flags, curve, split))
    return sections


def title_of(task: str) -> str:
    """What a task, or the figures on its test set, is called in headings."""
    if task.endswith(ON_TEST):
        return f"{title_of(task.removesuffix(ON_TEST))}, test set"
    return TITLES.get(task, task)


def flags_line(metrics: Metrics, perplexity: PerplexityReport | None) -> str:
    """What is wrong with the models, in one line; `perplexity` is None where there is no language model."""
    lines = [*(perplexity_lines(perplexity) if perplexity else []), *flag_lines(metrics.flags)]
    if not lines:
        return "flags: none"
    more = [f"and {len(lines) - MOST_FLAGS} more, which the report says"] if len(lines) > MOST_FLAGS else []
    return f"flags: {len(lines)}: " + "; ".join([*lines[:MOST_FLAGS], *more])


def samples_section(params: Mapping[str, Any], source: Path, first: int | None = None) -> Section:
    """What each method predicted with the first seed at the epoch that was kept, on the test set where there is one.

    Shown are the `first` examples, or, where that is None, some that are spread evenly over the data.
    """
    blocks: list[str | Table] = [f"{'Spread evenly over' if first is None else 'The first of'} each task's data."]
    grid = build(Grid, params, "finetune")
    for task in grid.all_tasks:
        part, read = ("test", read_tested) if has_test(source, task) else ("dev", read_epochs)
        kind, folder, seed = grid.kind_of(task), PREDICTIONS / task, str(grid.seeds[0])
        kept = {method: kept_epoch(read(folder / method / seed, kind)).rows for method in grid.methods_of(task)}
        blocks += [f"{title_of(on_test(task))}:"] if part == "test" else []
        blocks.append(SAMPLES[kind](source, task, part, kept, first))
    return Section("Sample predictions", blocks)


def _classified(source: Path, task: str, part: str, predictions: Predictions, first: int | None) -> Table:
    examples = read_examples(source, task, part)
    decided = {method: logits_of(rows).argmax(axis=1).tolist() for method, rows in predictions.items()}
    return classified_table(examples, read_classes(source, task), decided, sample_places(len(examples), first))


def _answered(source: Path, task: str, part: str, predictions: Predictions, first: int | None) -> Table:
    questions = read_questions(questions_path(source, part, task))
    answers = {method: decided_answers(rows) for method, rows in predictions.items()}
    return answered_table(questions, answers, sample_places(len(questions), first))


SAMPLES: dict[Kind, Callable[[Path, str, str, Predictions, int | None], Table]] = {
    "classification": _classified, "question_answering": _answered,
}  # fmt: skip


def read_curve(name: str) -> pd.DataFrame:
    """A learning curve: `epoch`, of a task `method` and `seed` (text), and figures, NaN where there is none."""
    path = REPORTS / "curves" / f"{name}.csv"
    return pd.read_csv(path, dtype={"method": str, "seed": str}, keep_default_na=False, na_values=[""])


def read_task_cards(params: Mapping[str, Any]) -> dict[str, Any]:
    """The cards of further tasks that are trained; SST-2 and SQuAD are on the source's card."""
    tasks = build(Grid, params, "finetune").all_tasks
    return {task: read_json(card_path(task)) for task in tasks if task not in TITLES}


def read_runs(params: Mapping[str, Any]) -> dict[str, RunRecord]:
    """Time and memory of pretraining and of each cell of the grid, by name."""
    paths = {path.relative_to(REPORTS / "runs").with_suffix(""): path for path in (REPORTS / "runs").rglob("*.json")}
    listed = build(Grid, params, "finetune").cells  # DVC leaves those of other methods lying
    names = sorted(name for name in paths if len(name.parts) == 1 or name.as_posix() in listed)
    names.sort(key=lambda name: len(name.parts))
    return {" ".join(name.parts): RunRecord.read(paths[name]) for name in names}
