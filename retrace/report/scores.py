"""A task's page: scores with intervals, comparisons of methods, scores by group and class, learning curves, flags."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from retrace.core.paths import ON_TEST, on_test
from retrace.evaluation.records import ClassBreakdown, Details, Figures, Intervals, TaskDetails
from retrace.perplexity.measures import PerplexityReport
from retrace.report.blocks import NOTHING, REPORTS, Figure, Section, Table, figure_text
from retrace.report.figures import line_chart
from retrace.statistics.scales import LOSS, SCALES, Flags, Legend

MOST_FLAGS = 10  # in the last line of a run
P_DIGITS = 4
CHOSEN_BY = (
    "These figures are of the validation set, by whose loss the epoch was chosen unless its settings keep the last. "
    "Those of the test set follow."
)
TESTED = (
    "These figures are of the test set. It chose nothing: it was answered before training, and by the weights of the "
    "epoch that was kept."
)
DIGITS = (
    "Fractions and correlations have four digits, percentages two. In brackets: 95% intervals, for the choice of "
    "examples and, over several seeds, of seeds too (Wilson's of shares of examples, else the bootstrap's; Student's "
    "of seeds); from one seed they are of that model alone. After ±: the standard deviation over seeds."
)
PAIRED = (
    "Pairs of methods on the same examples. A verdict needs a corrected p (Holm) below 0.05. Detectable: the smallest "
    "true difference that this data shows in 80% of cases."
)
ONE_SEED = {
    "models differ": "Models differ: these two models differ; the methods cannot be told apart from one seed.",
    "no difference shown": "No difference shown: between these two models; one seed says nothing of the methods.",
}


def flag_lines(of: str, flags: Flags) -> list[str]:
    """One line a flag: what it is of, the flag and its evidence."""
    return [f"{of}: {flag.replace('_', ' ')}: {evidence}" for flag, evidence in flags.items()]


def task_lines(task: str, details: TaskDetails) -> list[str]:
    """The same of a task: of every seed, of methods, and of the data."""
    lines = [line for method, found in details.methods.items() for seed, of in found.seeds.items()
             for line in flag_lines(f"{task} {method} {seed}", of.flags)]  # fmt: skip
    lines += [line for method, found in details.methods.items() for line in flag_lines(f"{task} {method}", found.flags)]
    return [*lines, *flag_lines(f"{task} data", details.flags)]


def perplexity_lines(report: PerplexityReport) -> list[str]:
    """The same of the language model, by split."""
    return [line for part, split in report.splits.items() for line in flag_lines(f"{part} language model", split.flags)]


def flags_line(details: Details, perplexity: PerplexityReport | None) -> str:
    """What is wrong with the models, in one line; `perplexity` is None where there is no language model."""
    lines = perplexity_lines(perplexity) if perplexity else []
    lines += [line for task, found in details.tasks.items() for line in task_lines(task, found)]
    if not lines:
        return "flags: none"
    more = [f"and {len(lines) - MOST_FLAGS} more, which the report says"] if len(lines) > MOST_FLAGS else []
    return f"flags: {len(lines)}: " + "; ".join([*lines[:MOST_FLAGS], *more])


def score_sections(details: Details) -> list[Section]:
    """The scores of every task; those of its test set, if any, follow."""
    sections = []
    for task, found in details.tasks.items():
        is_test = task.endswith(ON_TEST)
        split = TESTED if is_test else CHOSEN_BY if on_test(task) in details.tasks else ""
        curve = None if is_test else read_curve(f"tasks/{task}")
        sections.append(scores_section(task, found, curve, split))
    return sections


def title_of(task: str) -> str:
    """What a task, or the figures on its test set, is called in headings."""
    return f"{task.removesuffix(ON_TEST)}, test set" if task.endswith(ON_TEST) else task


def read_curve(name: str) -> pd.DataFrame:
    """A learning curve: `epoch`, of a task `method` and `seed` (text), and figures, NaN where there is none."""
    path = REPORTS / "curves" / f"{name}.csv"
    return pd.read_csv(path, dtype={"method": str, "seed": str}, keep_default_na=False, na_values=[""])


def scores_section(task: str, details: TaskDetails, curve: pd.DataFrame | None, split: str = "") -> Section:
    """The figures of a task; `curve` is its learning curve, if any, `split` a sentence on the split they are of."""
    warnings = [f"Warning: {line}." for line in task_lines(task, details)]
    notes = [f"{name}: {note}" for name, note in details.notes.items()]
    blocks = [*([split] if split else []), DIGITS, *warnings, _summary(details)]
    if curve is not None:
        blocks += _charts(task, details, curve)
    blocks += [*_comparisons(details), _groups(details), *_classes(details), _scores(details), *notes]
    if curve is not None:
        blocks.append(_curve_table(curve, details.legend))
    return Section(title_of(task), blocks)


def _summary(details: TaskDetails) -> Table:
    """A row for each baseline and method with the headline figures."""
    legend, headlines = details.legend, details.headlines
    rows = [
        (name.replace("_", " "), NOTHING, NOTHING,
         *(with_interval(score, legend, found.figures, found.intervals) for score in headlines))
        for name, found in details.baselines.items()
    ]  # fmt: skip
    for name, method in details.methods.items():
        epochs = (str(seed.epoch) for seed in method.seeds.values())
        rows.append(
            (name, " ".join(method.seeds), " ".join(epochs),
             *(with_interval(score, legend, method.figures, method.intervals, method.std) for score in headlines))
        )  # fmt: skip
    return Table(("model", "seeds", "epoch", *headlines), rows)


def _scores(details: TaskDetails) -> Table:
    """A row for each figure: baselines, then each method before and after training."""
    legend, methods = details.legend, details.methods
    names = list(dict.fromkeys(score for method in methods.values() for score in method.figures))
    columns: dict[str, list[str]] = {"score": names}
    for name, found in details.baselines.items():
        cells = [with_interval(score, legend, found.figures, found.intervals) for score in names]
        columns[name.replace("_", " ")] = cells
    for name, found in methods.items():
        before = pd.DataFrame([seed.before for seed in found.seeds.values()], columns=names).mean().to_dict()
        columns[f"{name}, before"] = [_cell(score, before[score], legend) for score in names]
        columns[name] = [with_interval(score, legend, found.figures, found.intervals, found.std) for score in names]
    return Table.of(columns)


def _comparisons(details: TaskDetails) -> list[str | Table]:
    pairs = [pair for pair in details.comparisons if pair.figure in details.headlines]
    rows = []
    for pair in pairs:
        difference, low, high, detectable = (
            _cell(pair.figure, value, details.legend)
            for value in (pair.difference, pair.low, pair.high, pair.detectable)
        )
        rows.append((pair.figure, f"{pair.first} – {pair.second}", difference, f"{low} to {high}", pair.test,
                     _probability(pair.p_corrected), pair.verdict, detectable))  # fmt: skip
    header = ("score", "methods", "difference", "95% interval", "test", "p, corrected", "verdict", "detectable")
    notes = [note for verdict, note in ONE_SEED.items() if verdict in {pair.verdict for pair in pairs}]
    return [PAIRED, Table(header, rows), *notes] if rows else []


def _probability(p: float) -> str:
    return figure_text(p, P_DIGITS) if p >= 10**-P_DIGITS else f"< {10**-P_DIGITS:.{P_DIGITS}f}"


def _groups(details: TaskDetails) -> Table:
    """The headlines by group of examples."""
    rows = [
        (group, figure_text(of.examples, 0), method,
         *(with_interval(score, details.legend, of.figures, of.intervals) for score in details.headlines))
        for kind, groups in next(iter(details.methods.values())).groups.items()
        for group in groups
        for method, of in ((method, found.groups[kind][group]) for method, found in details.methods.items())
    ]  # fmt: skip
    return Table(("examples", "count", "method", *details.headlines), rows)


def _classes(details: TaskDetails) -> list[Table]:
    """Precision, recall and F1 by class, and the confusions, means over seeds; of classifiers only."""
    every = {method: found.breakdown for method, found in details.methods.items()}
    found = {method: breakdown for method, breakdown in every.items() if isinstance(breakdown, ClassBreakdown)}
    if not found:
        return []
    names, measures = list(next(iter(found.values())).classes), ("precision", "recall", "f1")
    by_class = [
        (name, figure_text(of.classes[name]["examples"], 0), method,
         *(figure_text(of.classes[name][measure], 4) for measure in measures))
        for name in names
        for method, of in found.items()
    ]  # fmt: skip
    confusions = [
        (method, name, *(f"{count:,.6g}" for count in counts))
        for method, of in found.items()
        for name, counts in zip(names, of.confusion, strict=True)
    ]
    return [
        Table(("class", "count", "method", *measures), by_class),
        Table(("method", "right class", *(f"called {name}" for name in names)), confusions),
    ]


def _charts(task: str, details: TaskDetails, curve: pd.DataFrame) -> list[Figure]:
    title = title_of(task)
    charts = [
        line_chart(
            f"{task}-{score}", f"{title}: validation {score} by epoch; dashed lines are baselines.",
            points_by_epoch(curve, score), ("epoch", score),
            {name: of.figures[score] for name, of in details.baselines.items() if score in of.figures},
        )
        for score in details.headlines if score in curve
    ]  # fmt: skip
    caption = f"{title}: validation loss by epoch, in nats."
    return [*charts, line_chart(f"{task}-loss", caption, points_by_epoch(curve, "validation_loss"), ("epoch", "loss"))]


def _curve_table(curve: pd.DataFrame, legend: Legend) -> Table:
    columns = {}
    for name, values in curve.items():
        is_figure = name not in ("method", "seed", "epoch")
        texts = [_cell(str(name), value, legend) if is_figure else str(value) for value in values]
        columns[str(name).replace("_", " ")] = texts
    return Table.of(columns)


def with_interval(
    score: str, legend: Legend, values: Figures, intervals: Intervals,
    std: Mapping[str, float] | None = None,
) -> str:  # fmt: skip
    """A figure, after ± its standard deviation over seeds, in brackets its interval, as far as they are known."""
    text = _cell(score, values.get(score), legend)
    if std and score in std and legend[score].scale != "count":
        text += f" ± {_cell(score, std[score], legend)}"
    if score in intervals:
        text += " ({} – {})".format(*(_cell(score, intervals[score][end], legend) for end in ("low", "high")))
    return text


def _cell(score: str, value: float | None, legend: Legend) -> str:
    return figure_text(value, SCALES[legend.get(score, LOSS).scale].digits)


def points_by_epoch(curve: pd.DataFrame, score: str) -> list[dict[str, Any]]:
    """Points for `line_chart`: a line for each method and seed, coloured by method."""
    return [
        {"x": row["epoch"], "y": float(row[score]), "series": row["method"], "run": f"{row['method']} {row['seed']}"}
        for row in curve.dropna(subset=[score]).to_dict("records")
    ]
