"""Learning curves of a study: losses and scores by epoch, and the training loss by update, as its report drew them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stages.pages.content import Figure, Section
from stages.pages.figures import line_chart
from stages.pages.scores_page import points_by_epoch

Curve = Sequence[Mapping[str, str]]  # rows as text

LOSSES = {"training_loss": "training loss", "validation_loss": "validation loss"}  # in nats
SCORES = {"accuracy": "accuracy", "f1_micro": "micro-F1", "f1_macro": "macro-F1"}
ALL = (*LOSSES, *SCORES)


@dataclass(frozen=True)
class Drawing:
    """What one figure of the report shows."""

    name: str  # of files: letters, digits, dashes
    title: str
    curve: Curve  # of the methods that it shows
    figures: Sequence[str]  # columns of the curve
    updates: Mapping[tuple[str, str], Sequence[tuple[int, float]]] = field(default_factory=dict)
    # By method and seed: how many updates were done, and the mean training loss since the point before.


def curves_section(drawings: Sequence[Drawing], pretraining: Curve | None) -> Section:
    """`pretraining` is the curve of the language model; None where there is none."""
    charts = [] if pretraining is None else [_perplexity_chart(pretraining)]
    for drawing in drawings:
        charts += [*_by_update(drawing), *(_of_one_method if len(_methods(drawing)) == 1 else _of_several)(drawing)]
    return Section("Learning curves", charts)


def _of_one_method(drawing: Drawing) -> list[Figure]:
    """Losses in one chart and scores in another, a line a seed, coloured by what it shows."""
    charts = []
    for kind, unit in (("loss", "loss, in nats"), ("scores", "score")):
        names = [name for name in drawing.figures if (name in LOSSES) == (kind == "loss")]
        points = [point | {"series": _called(name), "run": f"{name} {point['run']}"}
                  for name in names for point in points_by_epoch(drawing.curve, name)]  # fmt: skip
        if points:
            charts.append(_chart(f"{drawing.name}-{kind}", f"{drawing.title}: {kind}", points, unit))
    return charts


def _of_several(drawing: Drawing) -> list[Figure]:
    """A chart for each figure, a line a method and seed, coloured by method."""
    return [
        _chart(f"{drawing.name}-{name}", f"{drawing.title}: {_called(name)}", points, _called(name))
        for name in drawing.figures
        if (points := points_by_epoch(drawing.curve, name))
    ]


def _by_update(drawing: Drawing) -> list[Figure]:
    """The training loss where the report shows it: a line a method and seed, coloured by method."""
    points = [
        {"x": update, "y": loss, "series": method, "run": f"{method} {seed}"}
        for (method, seed), losses in drawing.updates.items()
        for update, loss in losses
    ]
    if not points or "training_loss" not in drawing.figures:
        return []
    caption = f"{drawing.title}: training loss by update, each point the mean since the one before."
    return [line_chart(f"{drawing.name}-updates", caption, points, ("update", "loss, in nats"))]


def _perplexity_chart(curve: Curve) -> Figure:
    """Validation perplexity after each epoch; that before training would flatten the rest."""
    points = [
        {"x": int(row["epoch"]), "y": float(row["perplexity"]), "series": "validation", "run": "validation"}
        for row in curve
        if row["epoch"] != "0" and row["perplexity"]
    ]
    return _chart("curve-pretraining", "Pretraining: perplexity of the validation text", points, "perplexity")


def _chart(name: str, what: str, points: Sequence[dict[str, Any]], unit: str) -> Figure:
    return line_chart(name, f"{what}, by epoch.", points, ("epoch", unit))


def _methods(drawing: Drawing) -> set[str]:
    return {row["method"] for row in drawing.curve}


def _called(name: str) -> str:
    return (LOSSES | SCORES).get(name, name)
