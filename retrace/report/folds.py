"""The folds of a task's section: tables of every pair of methods, every score, every class, and the learning curves."""

from collections.abc import Sequence
from functools import partial

import pandas as pd

from retrace.evaluation.records import ClassBreakdown
from retrace.report.blocks import Fold, Table, figure_text
from retrace.report.names import (
    Scores,
    baseline_name,
    capital,
    each_once,
    listed,
    method_name,
    p_text,
    points,
    score_rows,
    shown,
    shown_ends,
    shown_signed,
    with_real_thresholds,
    with_unit,
)
from retrace.report.results import TaskResults, most_seeds
from retrace.statistics.comparisons import MODELS_DIFFER, MODELS_TIE

POSITIVE = ("precision", "recall", "f1")  # figures of the second of two classes
OF_ANSWERABLE = (
    " METEOR, BLEU and ROUGE: of answerable questions alone. Even right answers score 50 in METEOR if they have only "
    "one word, and 0 in BLEU if none has four."
)


def task_folds(task: TaskResults) -> list[Fold]:
    """The folds that a task's results fill."""
    folds = [_pairs(task), _scores(task), _classes(task)]
    folds += [] if task.curve is None else [_curve(task, task.curve)]
    return [fold for fold in folds if fold.blocks]


def _pairs(task: TaskResults) -> Fold:
    """Every pair of methods, by each headline."""
    pairs = [pair for pair in task.details.comparisons if pair.figure in task.details.headlines]
    rows, shares = [], list[str]()
    for pair in pairs:
        figure = task.details.legend[pair.figure]
        shares += [figure.name] if points(figure) else []
        rows.append((
            figure.name, f"{method_name(pair.first)} − {method_name(pair.second)}",
            shown_signed(figure, pair.difference), shown_ends(figure, pair.low, pair.high),
            pair.test, p_text(pair.p_corrected),
            method_name(pair.verdict) if pair.verdict in task.places else pair.verdict, shown(figure, pair.detectable),
        ))  # fmt: skip
    header = ("score", "methods", "difference", "95% interval", "test", "p, corrected", "better", "detectable")
    note = (
        "Both methods of a pair are scored on the same examples. A method is called better if p < 0.05 after Holm’s "
        "correction over all pairs of the same score. Intervals are for one pair, uncorrected, and may exclude 0 where "
        "the test shows no difference. Detectable: the smallest true difference that this data would detect with a "
        "power of 80%, corrected for all pairs; –: none on this scale."
    )
    note += f" Differences of {each_once(shares)} are in percentage points." if shares else ""
    verdicts = {pair.verdict for pair in pairs}
    about = "is about these two trained models; one seed says nothing about the methods."
    notes = [f"“{capital(said)}” {about}" for said in (MODELS_DIFFER, MODELS_TIE) if said in verdicts]
    table = Table(header, rows, label=f"Pairs of methods {task.name}")
    return Fold("Every pair of methods", "differences, paired by example", [note, table, *notes] if rows else [])


def _scores(task: TaskResults) -> Fold:
    """A row for each figure: the baselines', then each method's before and after training."""
    legend, methods = task.details.legend, task.details.methods
    found = dict.fromkeys(name for details in methods.values() for name in details.figures)
    names = [name for name in found if name in legend]
    header = ["score", "unit", *map(baseline_name, task.details.baselines)]
    kept: list[str] = []  # the epochs of each method's seeds
    columns: list[Scores] = [(baseline.figures, baseline.intervals, {}) for baseline in task.details.baselines.values()]
    for method, details in methods.items():
        seeds = details.seeds.values()
        began, ended = [seed.before for seed in seeds], [seed.figures for seed in seeds]
        before = pd.DataFrame(began).dropna(axis="columns").mean().to_dict()  # figures that all seeds have
        header += [f"{method_name(method)}, before", method_name(method)]
        columns.append((with_real_thresholds(before, began), {}, {}))
        columns.append((with_real_thresholds(details.figures, ended), details.intervals, details.std))
        kept.append(f"{method_name(method)} {', '.join(str(seed.epoch) for seed in seeds)}")
    note = "In brackets: 95% intervals. Before: the model before fine-tuning."
    several = any(len(details.seeds) > 1 for details in methods.values())
    if several:
        note = f"A method’s figures are means over seeds. After ±: the standard deviation over seeds. {note}"
    if task.kind == "question_answering":
        note += f" A best threshold of –:{' for at least one seed,' if several else ''} never answering scores best."
    note += _positive_class(task, names)
    note += OF_ANSWERABLE if any(name.startswith(("meteor", "bleu", "rouge")) for name in names) else ""
    notes = [f"Epochs kept, by seed: {'; '.join(kept)}."]
    notes += [f"{name}: {said}." for name, said in task.details.notes.items()]
    table = Table(header, score_rows(names, legend, columns), label=f"Scores {task.name}")
    return Fold("Every score", f"{len(names)} scores", [note, table, *notes])


def _positive_class(task: TaskResults, names: Sequence[str]) -> str:
    """A sentence that says which class precision, recall and F1 are of, where they are of one."""
    breakdowns = (details.breakdown for details in task.details.methods.values())
    classes = next((list(found.classes) for found in breakdowns if isinstance(found, ClassBreakdown)), [])
    single = [task.details.legend[name].name for name in POSITIVE if name in names]
    if len(classes) != 2 or not single:
        return ""
    return f" {capital(listed(single))}: of the class {classes[1]}; macro, micro and weighted: over both classes."


def _classes(task: TaskResults) -> Fold:
    """Precision, recall and F1 by class, for classifiers."""
    rows = [
        (name, figure_text(figures.get("examples"), 0), method_name(method),
         *(figure_text(100 * figures[measure], 1) for measure in ("precision", "recall", "f1")))
        for method in task.methods
        if isinstance(breakdown := task.details.methods[method].breakdown, ClassBreakdown)
        for name, figures in breakdown.classes.items()
    ]  # fmt: skip
    header = ("class", "examples", "method", "precision, %", "recall, %", "F1, %")
    table = Table(header, rows, label=f"Classes {task.name}")
    means = ["Means over seeds."] if most_seeds([task]) > 1 else []
    return Fold("By class", "precision and recall", [*means, table] if rows else [])


def _curve(task: TaskResults, curve: pd.DataFrame) -> Fold:
    legend, columns = task.curve_legend, {}
    rows = [with_real_thresholds(row, [row]) for row in curve.to_dict("records")]
    curve = pd.DataFrame(rows, columns=curve.columns)
    for name in map(str, curve):
        figure = legend.get(name)
        if figure and figure.scale == "count" and len({*curve[name]}) == 1:
            continue  # such as the number of questions, which is in the table of scores
        as_text = partial(shown, figure) if figure else method_name if name == "method" else str
        columns[with_unit(name, figure) if figure else name] = [as_text(value) for value in curve[name]]
    table = Table.of(columns, f"Learning curves {task.name}")
    return Fold("Learning curves as a table", f"{len(curve)} rows", [table])
