"""Learning curves of a study: losses and scores by epoch, a line a method and seed."""

from collections.abc import Mapping, Sequence

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


def _perplexity_chart(curve: Curve) -> Figure:
    """Validation perplexity after each epoch; that before training would flatten the rest."""
    points = [
        {"x": int(row["epoch"]), "y": float(row["perplexity"]), "series": "validation", "run": "validation"}
        for row in curve
        if row["epoch"] != "0"
    ]
    return line_chart("curve-pretraining", "Validation perplexity by epoch of pretraining.", points,
                      ("epoch", "perplexity"))  # fmt: skip
