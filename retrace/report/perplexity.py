"""How well the language model predicts held-out text."""

from collections.abc import Mapping, Sequence
from typing import Any

from retrace.report.blocks import Section, Table, figure_text
from retrace.report.figures import line_chart
from retrace.report.scores import health_lines

MEASURES = {
    "masked": "masked, fixed masks",
    "pseudo": "pseudo, each token in turn",
    "causal": "causal, sliding windows",
    "unigram": "unigram baseline",
}
CURVE = {  # heading and digits of each column
    "training_loss": ("training loss", 4),
    "validation_loss": ("validation loss", 4),
    "perplexity": ("perplexity", 2),
    "next_sentence_accuracy": ("next-sentence accuracy", 3),
    "seconds": ("seconds of training", 0),
}
UNITS = ("per_token", "per_word", "bits_per_byte")
INTERVALS = (
    "In brackets: 95% intervals for the choice of documents, or of passages for the pseudo-perplexity (bootstrap)."
)
ABSENT = "A dash: too large to be written down, as where a text has no spaces and so long words, or nothing was asked."
LARGE = 1e9  # a figure that is written as a power of ten
TOLD_APART = 0.52  # next-sentence accuracy; half of the pairs are of each kind


def perplexity_section(report: Mapping[str, Any], curve: Sequence[Mapping[str, str]]) -> Section:
    """The figures of both held-out splits, and the validation perplexity by epoch."""
    shown = [name for name in CURVE if name in curve[0]]
    by_epoch = Table(
        ("epoch", *(CURVE[name][0] for name in shown)),
        [(row["epoch"], *(figure_text(_number(row[name]), CURVE[name][1]) for name in shown)) for row in curve],
    )
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
    warnings = [f"Warning: {line}." for line in perplexity_lines(report)]
    table = perplexity_table(report)
    absent = [ABSENT] if any("–" in row[2:] for row in table.rows) else []
    blocks: list[Any] = [*warnings, INTERVALS, *absent, table, by_epoch, figure]
    if float(curve[-1].get("next_sentence_accuracy", 1)) < TOLD_APART:
        blocks.insert(0, "Warning: the model does not tell sentences that follow one another from others.")
    return Section("Perplexity", blocks)


def perplexity_lines(report: Mapping[str, Any]) -> list[str]:
    """One line a flag of the language model: the split, the flag and its evidence."""
    return health_lines({part: {"language model": figures["health"]} for part, figures in report.items()})


def perplexity_table(report: Mapping[str, Any]) -> Table:
    """A row a split and a kind of perplexity, the unigram baseline's among them."""
    rows = [
        (part, shown, *(_with_interval(figures[name], unit) for unit in UNITS))
        for part, figures in report.items()
        for name, shown in MEASURES.items()
        if name in figures
    ]
    return Table(("split", "perplexity", "per token", "per word", "bits per byte"), rows)


def _with_interval(figures: Mapping[str, Any], unit: str) -> str:
    if figures[unit] is None or "interval" not in figures:
        return _figure(figures[unit])
    low, high = (_figure(figures["interval"][unit][end]) for end in ("low", "high"))
    return f"{_figure(figures[unit])} ({low} – {high})"


def _figure(value: float | None) -> str:
    return figure_text(value) if value is None or value < LARGE else f"{value:.2e}"


def _number(text: str) -> float | None:
    return float(text) if text else None
