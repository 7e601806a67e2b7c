"""The report's page on perplexity: how well the language model predicts held-out text."""

import pandas as pd

from retrace.perplexity.measures import UNITS, PerplexityFigures, PerplexityReport
from retrace.report.blocks import NOTHING, Section, Table, figure_text
from retrace.report.figures import line_chart
from retrace.report.scores import perplexity_lines

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
INTERVALS = (
    "In brackets: 95% intervals for the choice of documents, or of passages for the pseudo-perplexity (bootstrap)."
)
ABSENT = "A dash: too large for a float, as for text without spaces, whose words are long, or no token was scored."
LARGE = 1e9  # from here on figures are in scientific notation
TOLD_APART = 0.52  # next-sentence accuracy; half of the pairs are of each kind


def perplexity_section(report: PerplexityReport, curve: pd.DataFrame) -> Section:
    """The figures of both held-out splits, and the losses by epoch."""
    shown = {
        heading: [figure_text(value, digits) for value in curve[name]]
        for name, (heading, digits) in CURVE.items() if name in curve
    }  # fmt: skip
    by_epoch = Table.of({"epoch": curve["epoch"].astype(str).tolist(), **shown})
    points = [
        {"x": epoch, "y": loss, "series": name, "run": name}
        for name in ("validation", "training")
        for epoch, loss in curve[["epoch", f"{name}_loss"]].dropna().itertuples(index=False)
    ]
    caption = "Pretraining loss by epoch, in nats a token; masked training hides more of them than validation."
    warnings = [f"Warning: {line}." for line in perplexity_lines(report)]
    if "next_sentence_accuracy" in curve and curve["next_sentence_accuracy"].iloc[-1] < TOLD_APART:
        warnings.insert(0, "Warning: the model does not tell sentences that follow one another from others.")
    table = perplexity_table(report)
    absent = [ABSENT] if any(NOTHING in row[2:] for row in table.rows) else []
    figure = line_chart("pretraining", caption, points, ("epoch", "loss"))
    return Section("Perplexity", [*warnings, INTERVALS, *absent, table, by_epoch, figure])


def perplexity_table(report: PerplexityReport) -> Table:
    """A row a split and a kind of perplexity, the unigram baseline's among them."""
    rows = [
        (part, shown, *(_with_interval(split.measures[name], unit) for unit in UNITS))
        for part, split in report.splits.items()
        for name, shown in MEASURES.items()
        if name in split.measures
    ]
    return Table(("split", "perplexity", "per token", "per word", "bits per byte"), rows)


def _with_interval(figures: PerplexityFigures, unit: str) -> str:
    value = getattr(figures, unit)
    if value is None or not figures.intervals:
        return _figure(value)
    low, high = (_figure(figures.intervals[unit][end]) for end in ("low", "high"))
    return f"{_figure(value)} ({low} – {high})"


def _figure(value: float | None) -> str:
    return figure_text(value) if value is None or value < LARGE else f"{value:.2e}"
