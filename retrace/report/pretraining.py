"""Pretraining: perplexity by tokens seen, and how well the language model predicts held-out text."""

import math
from collections.abc import Sequence

import pandas as pd

from retrace.core.records import RunRecord
from retrace.perplexity.measures import PerplexityFigures, PerplexityReport
from retrace.report import svg
from retrace.report.blocks import NOTHING, Cell, Fold, Panel, Panels, Section, Table, figure_text
from retrace.report.flags import flag_lines, perplexity_flags
from retrace.report.names import KINDS, shown, with_unit
from retrace.report.page import REPORTS
from retrace.report.results import Curve
from retrace.report.svg import Axes, Plot
from retrace.statistics.scales import CURVES, MEASURES

PER = ("perplexity_per_token", "perplexity_per_word", "bits_per_byte")
INTERVALS = (
    "In brackets: 95% intervals for the choice of documents, or of passages for the pseudo-perplexity (bootstrap)."
)
COMPARE = "Per word and per byte do not depend on the tokenizer and compare across models; per token does."
ABSENT = "A dash: too large for a float, as for text without spaces, whose words are long, or no token was scored."
LARGE = 1e9  # from here on figures are in scientific notation
TOLD_APART = 0.52  # next-sentence accuracy; half of the pairs are of each kind
MOST_POINTS = 200  # of the line


def pretraining_section(
    report: PerplexityReport, curve: pd.DataFrame, tokens: float = 0.0, updates: Curve = ()
) -> Section:
    """`curve` is by epoch, `updates` the training loss by tokens seen, `tokens` how many were seen in all."""
    warnings = [f"Warning: {line}." for line in flag_lines([*perplexity_flags(report)])]
    if "next_sentence_accuracy" in curve and curve["next_sentence_accuracy"].iloc[-1] < TOLD_APART:
        warnings.insert(0, "Warning: the model does not tell sentences that follow one another from others.")
    columns = {
        with_unit(name, what): [shown(what, of) for of in curve[name]]
        for name, what in (CURVES | MEASURES).items() if name in curve
    }  # fmt: skip
    by_epoch = Table.of({"epoch": curve["epoch"].astype(str).tolist(), **columns}, "Pretraining by epoch")
    table = perplexity_table(report)
    absent = [ABSENT] if any(NOTHING in str(cell) for row in table.rows for cell in row[2:]) else []
    fold = Fold("Losses by epoch", f"{len(curve)} rows", [by_epoch])
    return Section(
        "Pretraining",
        [*warnings, _figure(report, curve, tokens, updates), table, f"{INTERVALS} {COMPARE}", *absent, fold],
    )


def _figure(report: PerplexityReport, curve: pd.DataFrame, tokens: float, updates: Curve) -> Panels:
    """Perplexity on a logarithmic scale, so that it is the loss too."""
    last = float(curve["epoch"].to_numpy().max()) or 1.0
    per_epoch = tokens / last if tokens else 1.0
    valid = [
        (float(epoch) * per_epoch, float(loss))
        for epoch, loss in curve[["epoch", "validation_loss"]].dropna().to_numpy()
    ]
    train = list(updates) or [
        (float(epoch) * per_epoch, float(loss)) for epoch, loss in curve[["epoch", "training_loss"]].dropna().to_numpy()
    ]
    unigram = next(
        (
            split.measures["unigram"].perplexity_per_token
            for split in report.splits.values()
            if "unigram" in split.measures
        ),
        None,
    )
    known = [*(y for _, y in (*valid, *train)), *([math.log(unigram)] if unigram else [])]
    axes = Axes((0, last * per_epoch), (min(known) - 0.3, max(known) + 0.3))
    marks = [(math.log(base * 10**power), f"{base * 10**power:,}") for power in range(9) for base in (1, 3)]
    marks = [(y, said) for y, said in marks if axes.y[0] <= y <= axes.y[1]]
    across = [
        (x, f"{_tokens(x)} tokens" if tokens and x else f"{x:g}" if tokens else f"epoch {x:g}")
        for x in (0, axes.x[1] / 2, axes.x[1])
    ]
    drawn = [svg.grid(axes, across, marks), svg.line(axes, _thinned(train))]
    if unigram:
        drawn += [svg.level(axes, math.log(unigram)),
                  svg.text(axes, axes.x[1], math.log(unigram), f"unigram {unigram:,.0f}", "end", dy=-6)]  # fmt: skip
    drawn += [svg.dot(axes, x, y, "fill m1", 4.5) for x, y in valid]
    for i, (x, y) in enumerate(valid):
        anchor, dx = ("start", 10) if not i else ("end", 0) if i == len(valid) - 1 else ("middle", 0)
        said = ("validation " if i == len(valid) - 1 else "") + _perplexity(y)
        drawn.append(svg.text(axes, x, y, said, anchor, "ink", dy=4 if not i else -10, dx=dx))
    unit = "{} tokens" if tokens else "epoch {}"
    hits = [
        (
            x,
            unit.format(_tokens(x) if tokens else f"{x:g}")
            + f"\ntraining loss {figure_text(y, 2)}, perplexity {_perplexity(y)}",
        )
        for x, y in _thinned(train)
    ]
    drawn.append(svg.tips(axes, hits))
    label = "Perplexity of the validation text: " + ", ".join(_perplexity(y) for _, y in valid)
    note = (
        "Perplexity per token on a logarithmic scale, so that it reads as loss too, by "
        f"{'tokens seen' if tokens else 'epoch'}. Line: training, where more tokens may be hidden; dots: validation "
        "after each epoch; dashed: a model that knows only how frequent each token is."
    )
    return Panels("pretraining", "", note, [Panel("", Plot(svg.joined(drawn), label, 260, "wide"), 0)])


def perplexity_table(report: PerplexityReport) -> Table:
    """A row a split and a kind of perplexity, the unigram baseline's among them."""
    rows = [
        (KINDS[name], part, *(_with_interval(split.measures[name], unit) for unit in PER))
        for part, split in report.splits.items()
        for name in KINDS
        if name in split.measures
    ]
    return Table(("perplexity", "split", "per token", "per word", "bits per byte"), rows, label="Perplexity")


def _with_interval(figures: PerplexityFigures, unit: str) -> Cell:
    value, ends = getattr(figures, unit), figures.intervals.get(unit)
    if value is None or not ends:
        return Cell(_figure_text(value, unit))
    return Cell(
        _figure_text(value, unit), small=f"({_figure_text(ends['low'], unit)} – {_figure_text(ends['high'], unit)})"
    )


def _figure_text(value: float | None, unit: str) -> str:
    digits = 3 if unit == "bits_per_byte" else 2
    return figure_text(value, digits) if value is None or value < LARGE else f"{value:.2e}"


def _perplexity(loss: float) -> str:
    return figure_text(math.exp(min(loss, 300.0)), 1 if loss < 4 else 0)


def _tokens(count: float) -> str:
    return "0" if not count else f"{count / 1e9:.2f} B" if count >= 1e9 else f"{count / 1e6:.2f} M"


def _thinned(points: Curve) -> Sequence[tuple[float, float]]:
    return list(points)[:: 1 + len(points) // MOST_POINTS]


def tokens_and_losses(record: RunRecord | None) -> tuple[float, Curve]:
    """Tokens seen in pretraining, and the training loss by tokens; zero and none where they were not kept."""
    path = REPORTS / "curves" / "pretrain-updates.csv"
    if record is None or not record.tokens or not path.is_file():
        return 0.0, ()
    each = record.tokens / record.updates
    points = pd.read_csv(path)[["update", "training_loss"]].to_numpy()
    return float(record.tokens), [(float(update) * each, float(loss)) for update, loss in points]
