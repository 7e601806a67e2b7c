"""A task's section: rows of plots, and folded away every pair of methods, every score, and the learning curves."""

from collections.abc import Iterable, Sequence

import pandas as pd

from retrace.core.paths import ON_TEST
from retrace.evaluation.records import ClassBreakdown, Figures, Intervals
from retrace.report.blocks import Fold, Section, Table, figure_text
from retrace.report.names import UNITS, baseline_name, figure_name, method_name, p_text, shown, shown_signed
from retrace.report.panels import task_panels
from retrace.report.results import Task
from retrace.statistics.scales import CURVES, Figure, Legend

Scores = tuple[Figures, Intervals, Figures]  # figures, their intervals, and their standard deviations over seeds

CHOSEN_BY = (
    "These figures are of the validation set, by whose loss the epoch was chosen unless its settings keep the last. "
    "Those of the test set follow."
)
TESTED = (
    "These figures are of the test set. It chose nothing: it was answered before training, and by the weights of the "
    "epoch that was kept."
)
ONE_SEED = {
    "models differ": "Models differ: these two models differ; the methods cannot be told apart from one seed.",
    "no difference shown": "No difference shown: between these two models; one seed says nothing of the methods.",
}


def task_section(task: Task, names: Sequence[str]) -> Section:
    """`names` are those of all tasks; where a task's test set is among them the validation set's section says so."""
    split = "test" if task.name.endswith(ON_TEST) and task.curve is None else "validation"
    note = f"{task.name}: {task.examples:,} {split} {task.noun}. Plots go from the best method to the worst."
    chosen = [TESTED] if split == "test" else [CHOSEN_BY] if f"{task.name}{ON_TEST}" in names else []
    folds = [_pairs(task), _scores(task), _classes(task)]
    folds += [] if task.curve is None else [_curve(task, task.curve)]
    return Section(task.title, [note, *chosen, *task_panels(task), *[fold for fold in folds if fold.blocks]])


def _pairs(task: Task) -> Fold:
    """Every pair of methods by the headlines."""
    pairs = [pair for pair in task.details.comparisons if pair.figure in task.details.headlines]
    rows = []
    for pair in pairs:
        figure = task.details.legend[pair.figure]
        low, high = (shown_signed(figure, end) for end in sorted((pair.low, pair.high)))
        rows.append((
            figure_name(pair.figure, figure), f"{method_name(pair.first)} − {method_name(pair.second)}",
            shown_signed(figure, pair.difference), f"{low} to {high}", pair.test, p_text(pair.p_corrected),
            method_name(pair.verdict) if pair.verdict in task.places else pair.verdict, shown(figure, pair.detectable),
        ))  # fmt: skip
    header = ("score", "methods", "difference", "95% interval", "test", "p, corrected", "better", "detectable")
    note = (
        "On the same examples. A verdict needs a p below 0.05 after Holm’s correction for all pairs. Detectable: the "
        "smallest true difference that this data shows in 80% of cases."
    )
    notes = [said for verdict, said in ONE_SEED.items() if verdict in {pair.verdict for pair in pairs}]
    table = Table(header, rows, label=f"Pairs of methods {task.name}")
    return Fold("Every pair of methods", "differences, paired by example", [note, table, *notes] if rows else [])


def _scores(task: Task) -> Fold:
    """A row for each figure: baselines, then each method before and after training."""
    legend, methods = task.details.legend, task.details.methods
    names = [name for name in dict.fromkeys(name for of in methods.values() for name in of.figures) if name in legend]
    header = ["score", "unit", *map(baseline_name, task.details.baselines)]
    columns: list[Scores] = [(of.figures, of.intervals, {}) for of in task.details.baselines.values()]
    for method, of in methods.items():
        before = pd.DataFrame([seed.before for seed in of.seeds.values()]).mean().to_dict()
        header += [f"{method_name(method)}, before", method_name(method)]
        columns += [(before, {}, {}), (of.figures, of.intervals, of.std)]
    note = "In brackets: 95% intervals. After ±: the seeds’ standard deviation. Before: the model before fine-tuning."
    epochs = {method: ", ".join(str(seed.epoch) for seed in of.seeds.values()) for method, of in methods.items()}
    kept = "; ".join(f"{method_name(method)} {of}" for method, of in epochs.items())
    notes = [f"{name}: {said}." for name, said in task.details.notes.items()]
    table = Table(header, score_rows(names, legend, columns), label=f"Scores {task.name}")
    blocks = [note, table, f"Epochs that were kept, by seed: {kept}.", *notes]
    return Fold("Every score", f"{len(names)} of them", blocks)


def score_rows(names: Iterable[str], legend: Legend, columns: Sequence[Scores]) -> list[tuple[str, ...]]:
    """Name, unit and the columns' values of each figure."""
    return [
        (figure_name(name, legend[name]), UNITS.get(legend[name].scale, ""),
         *(_with_interval(name, legend[name], *column) for column in columns))
        for name in names
    ]  # fmt: skip


def _with_interval(name: str, figure: Figure, values: Figures, intervals: Intervals, std: Figures) -> str:
    """A figure, after ± its standard deviation over seeds, in brackets its interval, as far as they are known."""
    text = shown(figure, values.get(name))
    if name in std and figure.scale != "count":
        text += f" ± {shown(figure, std[name])}"
    if name in intervals:
        text += " ({} – {})".format(*(shown(figure, intervals[name][end]) for end in ("low", "high")))
    return text


def _classes(task: Task) -> Fold:
    """Precision, recall and F1 by class; of classifiers only."""
    rows = [
        (name, figure_text(of.get("examples"), 0), method_name(method),
         *(figure_text(100 * of[measure], 1) for measure in ("precision", "recall", "f1")))
        for method in task.methods
        if isinstance(breakdown := task.details.methods[method].breakdown, ClassBreakdown)
        for name, of in breakdown.classes.items()
    ]  # fmt: skip
    header = ("class", "examples", "method", "precision, %", "recall, %", "F1, %")
    table = Table(header, rows, label=f"Classes {task.name}")
    return Fold("By class", "precision and recall", [table] if rows else [])


def _curve(task: Task, curve: pd.DataFrame) -> Fold:
    legend, columns = CURVES | task.details.legend, {}
    for name, values in curve.items():
        figure = legend.get(str(name))
        if figure:
            columns[figure_name(str(name), figure)] = [shown(figure, of) for of in values]
        else:
            columns[str(name)] = [method_name(of) if name == "method" else str(of) for of in values]
    table = Table.of(columns, f"Learning curves {task.name}")
    return Fold("Learning curves as a table", f"{len(curve)} rows", [table])
