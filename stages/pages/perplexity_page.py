"""How well the language model predicts held-out text."""

from collections.abc import Mapping, Sequence
from typing import Any

from stages.pages.content import Section, Table, figure_text
from stages.pages.figures import line_chart

MEASURES = {
    "masked": "masked, fixed masks",
    "pseudo": "pseudo, each token in turn",
    "causal": "causal, sliding windows",
    "unigram": "unigram baseline",
}


def perplexity_section(report: Mapping[str, Any], curve: Sequence[Mapping[str, str]]) -> Section:
    """The figures of both held-out splits, and the validation perplexity by epoch."""
    rows = [
        (part, shown, *(figure_text(figures[name][unit]) for unit in ("per_token", "per_word", "bits_per_byte")))
        for part, figures in report.items()
        for name, shown in MEASURES.items()
        if name in figures
    ]
    table = Table(("split", "perplexity", "per token", "per word", "bits per byte"), rows)
    by_epoch = Table(
        ("epoch", "training loss", "validation loss", "perplexity"),
        [
            (row["epoch"], *(figure_text(_number(row[name]), 4) for name in ("training_loss", "validation_loss")),
             figure_text(_number(row["perplexity"])))
            for row in curve
        ],
    )  # fmt: skip
    points = [
        {"x": int(row["epoch"]), "y": _number(row["validation_loss"]), "series": "validation", "run": "v"}
        for row in curve
    ]
    points += [
        {"x": int(row["epoch"]), "y": _number(row["training_loss"]), "series": "training", "run": "t"}
        for row in curve
        if row["training_loss"]
    ]
    figure = line_chart(
        "pretraining",
        "Pretraining loss by epoch, in nats a token; masked training hides more of them than validation.",
        points,
        ("epoch", "loss"),
    )
    blocks: list[Any] = [table, by_epoch, figure]
    weak = [part for part, figures in report.items() if not figures["beats_unigram"]]
    if weak:
        blocks.insert(0, f"Warning: on {' and '.join(weak)} the model predicts no better than word frequencies do.")
    return Section("Perplexity", blocks)


def _number(text: str) -> float | None:
    return float(text) if text else None
