"""A study's page: published figures next to Retrace's, what is doubtful about them, and the whole run."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from retrace.core.paths import PRETRAINED, TEXT, checkpoint_facts, named_checkpoint
from retrace.core.weights import parameters_by_module
from retrace.evaluation.flags import figure_flags
from retrace.report.blocks import NOTHING, Panels, Section, Table, TableCell
from retrace.report.browser import predictions_section
from retrace.report.pretraining import perplexity_by_epoch, pretraining_section
from retrace.report.results import TaskResults, read_curve, read_tasks
from retrace.report.runs import data_fold, models_folds, read_stages, settings_fold, time_fold
from retrace.report.tasks import learning, task_section
from retrace.results.grid import Grid
from retrace.statistics.scales import SHARES, factor
from retrace.study.comparison import Reports, pretrains
from retrace.study.published import ComparedTable, PublishedCell, PublishedStudy, StudyResult

LEGEND = (
    "Next to each published figure, shown as printed, is Retrace's with as many digits. After ±: the standard "
    "deviation over seeds; in brackets: a 95% interval. For a mean it covers examples and seeds, or seeds alone "
    "(Student's) where the examples behind it are not known; for one seed, examples alone. ≠ marks a "
    "published figure outside of it; figures that are counted have to be equal. (≠) marks one outside of the interval"
    " of one seed: another seed might have given it, so nothing follows. A dash: no figure."
)
GRADES = (
    "These statements follow from the report's figures, or from counts over the published data. “Probably” and "
    "“perhaps” mark our best explanation."
)
NOTICES = (
    "Retrace's rules for its own figures, applied to the published ones: figures off their scale or at odds with one "
    "another."
)
PLOTTED = ("training_loss", "accuracy", "exact_match", "f1_micro", "f1_macro")  # by epoch, if a task has it
SCORED = ("score", "before", "epoch")
CLASSES: dict[str, str] = dict.fromkeys(("accuracy", "precision", "recall", "f1"), "fraction")
ANSWERS: dict[str, str] = dict.fromkeys(("exact_match", "f1"), "percentage")


def study_sections(study: PublishedStudy, result: StudyResult, evidence: Sequence[Mapping[str, str]]) -> list[Section]:
    """What the study is, its tables, and what is doubtful, different or chosen.

    `evidence` has the figures shown for each doubt.
    """
    about = f"{study.title}. {study.introduction} Source: {study.source}."
    sections = [Section("What this is", [about, result.comparable]), *compared_sections(result.tables.values())]
    noticed = notices({table.name: table.cells() for table in study.tables})
    wrong = [*_doubts(study, evidence), *([NOTICES] if noticed else [])]
    wrong += [f"Retrace notices: {line}." for line in noticed]
    rest: dict[str, Sequence[str | Table]] = {
        "What is wrong or doubtful in the report": wrong,
        "Where this run differs from the report's": study.differences,
        "What the report leaves open": study.choices,
    }
    return [*sections, *(Section(title, blocks) for title, blocks in rest.items() if blocks)]


def compared_sections(tables: Iterable[ComparedTable]) -> list[Section]:
    """The tables under the sections that they name."""
    blocks: dict[str, list[str | Table]] = {}
    for table in tables:
        blocks.setdefault(table.section, [LEGEND] if not blocks else []).extend([f"{table.title}:", _compared(table)])
    return [Section(title, contents) for title, contents in blocks.items()]


def _compared(table: ComparedTable) -> Table:
    columns = next(iter(table.rows.values()))
    header, rows = ["", *(f"{column}, {whose}" for column in columns for whose in ("published", "Retrace"))], []
    for heading, cells in table.rows.items():
        row: list[str | TableCell] = [heading]
        for column, cell in cells.items():
            texts = {"published": cell.published_text, "reproduced": cell.reproduced_text}
            row += [TableCell(text, bold=(heading, column) in table.best.get(who, ())) for who, text in texts.items()]
        rows.append(row)
    return Table(header, rows, label=table.title)


def _doubts(study: PublishedStudy, evidence: Sequence[Mapping[str, str]]) -> list[str | Table]:
    blocks: list[str | Table] = [GRADES] if study.doubts else []
    for doubt, figures in zip(study.doubts, evidence, strict=True):
        blocks.append(f"{doubt.about}: the report says {doubt.says}. {doubt.finding}")
        if figures:
            rows = [(what, found or NOTHING) for what, found in figures.items()]
            blocks.append(Table(("computed by Retrace", "figure"), rows, label=f"Evidence on {doubt.about}"))
    return blocks


def notices(tables: Mapping[str, Iterable[PublishedCell]]) -> list[str]:
    """A line for each flag of the published figures: the table, the task and method, the flag and its evidence.

    The rules look at all figures that a table has of a task and method, whose addresses differ in the last part only.
    """
    found = []
    for table, cells in tables.items():
        for name, group in _groups(cells).items():
            figures, scales, halves = _on_rules_scales(group)
            flags = figure_flags(figures, scales)
            reach = halves.get("f1", 0) + halves.get("exact_match", 0)
            if "f1_below_exact_match" in flags and figures["f1"] + reach >= figures["exact_match"]:
                del flags["f1_below_exact_match"]  # they may be equal within their rounding
            found += [f"{table}: {name}: {flag.replace('_', ' ')}: {evidence}" for flag, evidence in flags.items()]
    return found


def _groups(cells: Iterable[PublishedCell]) -> dict[str, dict[str, PublishedCell]]:
    """The published scores, by task and method and by name."""
    groups: dict[str, dict[str, PublishedCell]] = {}
    for cell in cells:
        kind, *parts = (cell.address or "").split(".")
        if kind in SCORED and cell.published is not None and cell.published.end is None:
            what = ("before training", *parts[:-1]) if kind == "before" else parts[:-1]
            groups.setdefault(" ".join(what), {})[parts[-1]] = cell
    return groups


def _on_rules_scales(group: Mapping[str, PublishedCell]) -> tuple[dict[str, float], dict[str, str], dict[str, float]]:
    """Published figures, their scales and half of their last digits, on the scales that the flags expect."""
    figures, scales, halves = {}, {}, {}
    ruled = ANSWERS if "exact_match" in group else CLASSES
    for name, cell in group.items():
        assert cell.published is not None
        given = "percentage" if cell.scale == "percent" else cell.scale
        scales[name] = ruled.get(name, given) if given in SHARES else given
        times = factor(given, scales[name])
        figures[name], halves[name] = cell.published.value * times, cell.half * times
    return figures, scales, halves


def run_sections(study: PublishedStudy, reports: Reports) -> Iterator[Section]:
    """Learning curves, scores, predictions, data, models and settings of the run."""
    params, tasks = reports.params, read_tasks(reports.details, reports.params)
    curves = [] if reports.pretraining is None else perplexity_by_epoch(reports.pretraining)
    curves += [row for task in tasks for row in further_curves(task)]
    if curves:
        yield Section("Learning curves", curves)
    yield from (task_section(task, list(reports.details.tasks)) for task in tasks)
    if reports.perplexity is not None and reports.pretraining is not None:
        updates = read_curve("pretrain/updates")
        yield pretraining_section(reports.perplexity, reports.pretraining, updates, reports.runs["pretrain"])
    yield predictions_section(params, tasks, first=study.first_samples)
    time, data = time_fold(reports.runs, read_stages(), params), data_fold(params, reports.pretraining is not None)
    folders = _model_folders(params).items()
    models = {name: (checkpoint_facts(folder), parameters_by_module(folder)) for name, folder in folders}
    yield Section("Data and runs", [time, data, *models_folds(models, reports.runs), settings_fold(params)])


def further_curves(task: TaskResults) -> Iterator[Panels]:
    """Curves that published reports plot, besides the headline's and the losses, which are in the task's section."""
    for key in PLOTTED:
        if key != task.headline:
            yield from learning(task, key, f"{task.title}: {key.replace('_', ' ')}")


def study_inputs(params: Mapping[str, Any]) -> list[Path]:
    """The folders that the page is made from, besides reports and predictions."""
    grid = Grid.read(params)
    data = [grid.data_of(task) for task in grid.all_tasks]
    return [*data, *([TEXT] if pretrains(params) else []), *_model_folders(params).values()]


def _model_folders(params: Mapping[str, Any]) -> dict[str, Path]:
    """The folders of the models that fine-tuning starts from, by name; the only one has no name."""
    named = {name: named_checkpoint(name) for name in params.get("checkpoints", {})}
    own = {PRETRAINED.name if named else "": PRETRAINED} if pretrains(params) else {}
    return own | named
