"""A task's scores with their intervals, the comparison of its methods, what is behind the figures, and warnings."""

from collections.abc import Mapping, Sequence
from typing import Any

from retrace.report.blocks import Figure, Section, Table, figure_text, interval_text
from retrace.report.figures import line_chart

Block = str | Table | Figure

DIGITS = {"fraction": 4, "percentage": 2, "correlation": 4, "count": 0, "score": 4}
LOSS_DIGITS = 4
P_DIGITS = 4
SCALES = (
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


def health_lines(health: Mapping[str, Mapping[str, Mapping[str, str]]]) -> list[str]:
    """One line a flag: the task, what is flagged, the flag and its evidence."""
    return [
        f"{task} {name}: {flag.replace('_', ' ')}: {evidence}"
        for task, found in health.items()
        for name, flags in found.items()
        for flag, evidence in flags.items()
    ]


def scores_section(
    task: str, title: str, figures: Mapping[str, Any], details: Mapping[str, Any],
    health: Mapping[str, Mapping[str, str]], curve: Sequence[Mapping[str, str]], split: str = "",
) -> Section:  # fmt: skip
    """`figures`, `details` and `health` are the task's parts of metrics.json and scores.json.

    `curve` is empty where there is none; `split` is a sentence on which of the task's splits these are figures of.
    """
    methods = [name for name in figures if name != "baselines"]
    warnings = [f"Warning: {line}." for line in health_lines({task: health})]
    notes = [f"{name}: {note}" for name, note in details["notes"].items()]
    return Section(
        title,
        [*([split] if split else []), SCALES, *warnings, _summary(figures, details, methods),
         *_charts(task, title, figures, details, curve),
         *_comparisons(details), *_breakdowns(details, methods), _scores(figures, details, methods), *notes,
         *([_curve_table(curve, details)] if curve else [])],
    )  # fmt: skip


def _summary(figures: Mapping[str, Any], details: Mapping[str, Any], methods: Sequence[str]) -> Table:
    """A row a baseline and a method: the figures that methods are judged by."""
    headlines, scales = details["headlines"], details["scales"]
    rows = [
        (name.replace("_", " "), "–", "–",
         *(with_interval(values, {}, details["baselines"][name], score, scales) for score in headlines))
        for name, values in figures["baselines"].items()
    ]  # fmt: skip
    for method in methods:
        cells, found = figures[method], details["methods"][method]
        epochs = " ".join(str(cells[seed]["epoch"]) for seed in found["seeds"])
        rows.append(
            (method, " ".join(found["seeds"]), epochs,
             *(with_interval(cells["mean"], cells.get("sd", {}), found["intervals"], score, scales)
               for score in headlines))
        )  # fmt: skip
    return Table(("model", "seeds", "epoch", *headlines), rows)


def _scores(figures: Mapping[str, Any], details: Mapping[str, Any], methods: Sequence[str]) -> Table:
    """A row a figure: baselines, then each method before and after training."""
    scales = details["scales"]
    names = list(dict.fromkeys(name for method in methods for name in figures[method]["mean"]))
    header, columns = ["score"], []
    for name, values in figures["baselines"].items():
        header.append(name.replace("_", " "))
        columns.append([with_interval(values, {}, details["baselines"][name], score, scales) for score in names])
    for method in methods:
        cells, found = figures[method], details["methods"][method]
        header += [f"{method}, before", method]
        before = [cell["before"] for cell in found["seeds"].values()]
        columns.append([_cell(score, _mean(before, score), scales) for score in names])
        columns.append([with_interval(cells["mean"], cells.get("sd", {}), found["intervals"], score, scales)
                        for score in names])  # fmt: skip
    return Table(header, [[name, *(column[place] for column in columns)] for place, name in enumerate(names)])


def _comparisons(details: Mapping[str, Any]) -> list[Block]:
    rows = []
    for pair in details["comparisons"]:
        if pair["figure"] in details["headlines"]:
            shown = {name: _cell(pair["figure"], pair[name], details["scales"])
                     for name in ("difference", "low", "high", "detectable")}  # fmt: skip
            rows.append(
                (pair["figure"], f"{pair['first']} – {pair['second']}", f"{shown['difference']}",
                 f"{shown['low']} to {shown['high']}", pair["test"], _probability(pair["p_corrected"]),
                 pair["verdict"], shown["detectable"])
            )  # fmt: skip
    header = ("score", "methods", "difference", "95% interval", "test", "p, corrected", "verdict", "detectable")
    given = {pair["verdict"] for pair in details["comparisons"] if pair["figure"] in details["headlines"]}
    notes = [note for verdict, note in ONE_SEED.items() if verdict in given]
    return [PAIRED, Table(header, rows), *notes] if rows else []


def _probability(p: float) -> str:
    return figure_text(p, P_DIGITS) if p >= 10**-P_DIGITS else f"< {10**-P_DIGITS:.{P_DIGITS}f}"


def _breakdowns(details: Mapping[str, Any], methods: Sequence[str]) -> list[Block]:
    """Of each method's first seed: groups of examples, classes and confusions."""
    first = {method: next(iter(details["methods"][method]["seeds"].values())) for method in methods}
    blocks: list[Block] = [_groups(details, first)]
    classes = {method: found["classes"] for method, found in first.items() if "classes" in found}
    if classes:
        blocks += [_classes(classes), _confusions(first)]
    return blocks


def _groups(details: Mapping[str, Any], first: Mapping[str, Any]) -> Table:
    headlines = details["headlines"]
    rows = [
        (group, figure_text(found["groups"][group]["examples"], 0), method,
         *(_cell(score, found["groups"][group].get(score), details["scales"]) for score in headlines))
        for group in next(iter(first.values()))["groups"]
        for method, found in first.items()
    ]  # fmt: skip
    return Table(("examples", "count", "method", *headlines), rows)


def _classes(classes: Mapping[str, Any]) -> Table:
    measures = ("precision", "recall", "f1")
    rows = [
        (name, figure_text(found["examples"], 0), method, *(figure_text(found[measure], 4) for measure in measures))
        for name in next(iter(classes.values()))
        for method, found in ((method, every[name]) for method, every in classes.items())
    ]
    return Table(("class", "count", "method", *measures), rows)


def _confusions(first: Mapping[str, Any]) -> Table:
    names = list(next(iter(first.values()))["classes"])
    rows = [
        (method, name, *(figure_text(count, 0) for count in counts))
        for method, found in first.items()
        for name, counts in zip(names, found["confusion"], strict=True)
    ]
    return Table(("method", "right class", *(f"called {name}" for name in names)), rows)


def _charts(
    task: str, title: str, figures: Mapping[str, Any], details: Mapping[str, Any], curve: Sequence[Mapping[str, str]]
) -> list[Block]:
    if not curve:
        return []
    blocks: list[Block] = [
        line_chart(
            f"{task}-{score}", f"{title}: validation {score} by epoch; dashed lines are baselines.",
            points_by_epoch(curve, score), ("epoch", score),
            {name: values[score] for name, values in figures["baselines"].items() if score in values},
        )
        for score in details["headlines"] if score in curve[0]
    ]  # fmt: skip
    caption = f"{title}: validation loss by epoch, in nats."
    return [*blocks, line_chart(f"{task}-loss", caption, points_by_epoch(curve, "validation_loss"), ("epoch", "loss"))]


def _curve_table(curve: Sequence[Mapping[str, str]], details: Mapping[str, Any]) -> Table:
    whole = ("method", "seed", "epoch")
    return Table(
        [name.replace("_", " ") for name in curve[0]],
        [[text if name in whole else _cell(name, float(text) if text else None, details["scales"])
          for name, text in row.items()] for row in curve],
    )  # fmt: skip


def with_interval(
    values: Mapping[str, float], spread: Mapping[str, float], intervals: Mapping[str, Any], score: str,
    scales: Mapping[str, str],
) -> str:  # fmt: skip
    """A figure, after ± its spread over seeds, in brackets its interval, as far as they are known."""
    text = _cell(score, values.get(score), scales)
    if score in spread and scales.get(score) != "count":
        text += f" ± {_cell(score, spread[score], scales)}"
    if score in intervals:
        text += interval_text(intervals[score], _digits(score, scales))
    return text


def _cell(name: str, value: float | None, scales: Mapping[str, str]) -> str:
    return figure_text(value, _digits(name, scales))


def _digits(name: str, scales: Mapping[str, str]) -> int:
    return DIGITS[scales[name]] if name in scales else LOSS_DIGITS


def _mean(cells: Sequence[Mapping[str, float]], score: str) -> float | None:
    values = [cell[score] for cell in cells if score in cell]
    return sum(values) / len(values) if values else None


def points_by_epoch(curve: Sequence[Mapping[str, str]], score: str) -> list[dict[str, Any]]:
    """What `line_chart` draws of a task's learning curve: a line a method and seed, coloured by method."""
    return [
        {
            "x": int(row["epoch"]),
            "y": float(row[score]),
            "series": row["method"],
            "run": f"{row['method']} {row['seed']}",
        }
        for row in curve
        if row[score]
    ]
