"""A task's scores beside its baselines, its learning curves, and warnings."""

from collections.abc import Mapping, Sequence
from typing import Any

from stages.pages.content import Section, Table, figure_text
from stages.pages.figures import line_chart

HIDDEN = ("epoch", "flags")
FLAGS = {
    "one_class_only": "gives every sentence the same class",
    "not_above_majority": "is no better than the most frequent class",
    "always_empty": "never answers",
    "f1_without_exact": "has words in common with the answers but hardly an exact match",
    "not_above_no_answer": "is no better than never answering",
}


SCALES = {
    "fraction": ("Fractions, from 0 to 1.", 4),
    "percentage": ("Percentages, from 0 to 100; totals are counts.", 2),
}


def scores_section(
    title: str, task: Mapping[str, Any], curve: Sequence[Mapping[str, str]], main: str, scale: str
) -> Section:
    """`main` is the score that is drawn; `scale` is that of the scores, a key of SCALES."""
    unit, digits = SCALES[scale]
    methods = {name: cells for name, cells in task.items() if name != "baselines"}
    warnings = [
        f"Warning: {method}, seed {seed}, {FLAGS.get(flag, flag)}."
        for method, cells in methods.items()
        for seed, figures in cells.items()
        for flag, raised in figures.get("flags", {}).items()
        if raised
    ]
    caption = f"{title}: validation {main} by epoch; dashed lines are baselines."
    figure = line_chart(
        f"{title.split()[0].lower()}-{main}", caption, _points(curve, main), ("epoch", main),
        {name: figures[main] for name, figures in task["baselines"].items() if main in figures},
    )  # fmt: skip
    losses = line_chart(
        f"{title.split()[0].lower()}-loss", f"{title}: validation loss by epoch, in nats.",
        _points(curve, "validation_loss"), ("epoch", "loss"),
    )  # fmt: skip
    return Section(
        title,
        [unit, *warnings, _scores(task["baselines"], methods, digits), figure, losses, _curve_table(curve, digits)],
    )


def _scores(baselines: Mapping[str, Any], methods: Mapping[str, Any], digits: int) -> Table:
    names = [name for name in next(iter(methods.values()))["mean"] if name not in HIDDEN]
    rows = [
        (name, "–", "–", *(_cell(score, figures.get(score), digits) for score in names))
        for name, figures in baselines.items()
    ]
    for method, cells in methods.items():
        for seed, figures in cells.items():
            if seed == "mean" and len(cells) == 2:
                continue
            epoch = str(figures.get("epoch", "–"))
            rows.append((method, seed, epoch, *(_cell(score, figures.get(score), digits) for score in names)))
    return Table(("model", "seed", "best epoch", *names), rows)


def _curve_table(curve: Sequence[Mapping[str, str]], digits: int) -> Table:
    header = list(curve[0])
    whole = ("method", "seed", "epoch")
    return Table(
        [name.replace("_", " ") for name in header],
        [
            [
                row[name] if name in whole else _cell(name, float(row[name]) if row[name] else None, digits)
                for name in header
            ]
            for row in curve
        ],
    )


def _cell(name: str, value: float | None, digits: int) -> str:
    """Counts whole, losses with four digits, scores as their scale has it."""
    return figure_text(value, 0 if name.endswith("total") else 4 if name.endswith("loss") else digits)


def _points(curve: Sequence[Mapping[str, str]], score: str) -> list[dict[str, Any]]:
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
