"""Learning curves of a study: losses and scores by epoch, a line a method and seed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stages.pages.content import Figure, Section
from stages.pages.figures import line_chart
from stages.pages.scores_page import points_by_epoch

Curve = Sequence[Mapping[str, str]]  # rows as text

CLASSIFICATION = {
    "training_loss": "training loss, in nats",
    "validation_loss": "validation loss, in nats",
    "accuracy": "validation accuracy",
    "f1_micro": "micro-F1 on validation",
    "f1_macro": "macro-F1 on validation",
}


@dataclass(frozen=True)
class Drawn:
    """A figure of a report: what it shows of which rows of a learning curve."""

    title: str
    curve: Curve
    figures: Sequence[str]  # columns


def curves_section(tasks: Mapping[str, tuple[str, Curve]], pretraining: Curve | None) -> Section:
    """`tasks` holds the title and the curve of each classification task; `pretraining` is None where there was none."""
    figures = [] if pretraining is None else [_perplexity_chart(pretraining)]
    for task, (title, curve) in tasks.items():
        figures += [
            line_chart(f"curve-{task}-{name}", f"{title}: {what}, by epoch.", points, ("epoch", name.replace("_", " ")))
            for name, what in CLASSIFICATION.items()
            if name in curve[0] and (points := points_by_epoch(curve, name))
        ]
    return Section("Learning curves", figures)


def drawn_section(drawn: Sequence[Drawn], pretraining: Curve | None) -> Section:
    """The figures as a report drew them: of one method losses in one chart and scores in another, else one for each."""
    charts = [] if pretraining is None else [_perplexity_chart(pretraining)]
    for place, figure in enumerate(drawn, 1):
        is_one = len({row["method"] for row in figure.curve}) == 1
        losses = [name for name in figure.figures if name.endswith("loss")]
        scores = [name for name in figure.figures if name not in losses]
        groups = [group for group in (losses, scores) if group] if is_one else [[name] for name in figure.figures]
        for group in groups:
            points = [point for name in group for point in _points(figure.curve, name, is_one)]
            what = group[0].replace("_", " ") if len(group) == 1 else "score"
            charts.append(line_chart(f"figure-{place}-{group[0]}", f"{figure.title}: {_listed(group)}, by epoch.",
                                     points, ("epoch", what)))  # fmt: skip
    return Section("Learning curves", charts)


def _points(curve: Curve, name: str, is_one: bool) -> list[dict[str, Any]]:
    """The line of a method, called as the method, or where there is but one as what it shows."""
    points = points_by_epoch(curve, name)
    if not is_one:
        return points
    return [{**point, "series": name.replace("_", " "), "run": f"{name} {point['run']}"} for point in points]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(name.replace("_", " ") for name in names)


def _perplexity_chart(curve: Curve) -> Figure:
    """Validation perplexity after each epoch; that before training would flatten the rest."""
    points = [
        {"x": int(row["epoch"]), "y": float(row["perplexity"]), "series": "validation", "run": "validation"}
        for row in curve
        if row["epoch"] != "0"
    ]
    return line_chart("curve-pretraining", "Validation perplexity by epoch of pretraining.", points,
                      ("epoch", "perplexity"))  # fmt: skip
