"""Pretraining: the learning curve, and perplexities of held-out text."""

import math
from collections.abc import Iterator
from dataclasses import replace

import pandas as pd
from markupsafe import Markup

from retrace.core.records import RunRecord
from retrace.perplexity.measures import UNITS, PerplexityFigures, PerplexityReport
from retrace.report import svg
from retrace.report.blocks import Fold, Panel, Panels, Section, Table, TableCell, figure_text
from retrace.report.flags import exp_text, flag_lines, perplexity_flags
from retrace.report.names import KINDS, count_text, shown, with_unit
from retrace.report.results import Curve, curve_of, thinned
from retrace.report.svg import Axes
from retrace.report.tasks import epoch_axes
from retrace.statistics.scales import CURVES

INTERVALS = "In brackets: 95% intervals over documents, or over passages for the pseudo-perplexity (bootstrap)."
COMPARE = "Compare models per word or per byte; per token depends on the tokenizer."
ABSENT = "–: too large for a float (per word, in a text without spaces), or no token was scored."
LARGE = 1e9  # figures from here on are in scientific notation
TOLD_APART = 0.52  # least next-sentence accuracy without a warning; chance is 0.5
MOST_POINTS = 200  # of the training curve
MOST_POWERS = 9  # of ten, beside the figure
IN_FULL = 6  # powers of ten that are written in full, up to 300,000: beside the figure there is no room for more
ROOM = 16  # % of the width of the figure between the labels of two dots: 48 px on a phone


def pretraining_section(
    report: PerplexityReport, curve: pd.DataFrame, updates: pd.DataFrame, record: RunRecord
) -> Section:
    """The figure and tables; `curve` has losses by epoch, `updates` the training loss by update."""
    warnings = [f"Warning: {line}." for line in flag_lines(perplexity_flags(report))]
    if "next_sentence_accuracy" in curve and curve["next_sentence_accuracy"].iloc[-1] < TOLD_APART:
        warnings.insert(0, "Warning: next-sentence prediction is at chance.")
    columns = {"epoch": curve["epoch"].astype(str).tolist()}
    for name, what in CURVES.items():
        if name == "training_loss" and "next_sentence_accuracy" in curve:
            what = replace(what, name="training loss, with that of the pairs")
        if name in curve:
            columns[with_unit(name, what)] = [shown(what, value) for value in curve[name]]
    measured = [figures for split in report.splits.values() for figures in split.measures.values()]
    values = [getattr(figures, unit) for figures in measured for unit in UNITS]
    values += [end for figures in measured for ends in figures.intervals.values() for end in ends.values()]
    absent = [ABSENT] if None in values else []
    count = f"{len(curve)} row{'s' if len(curve) != 1 else ''}"
    fold = Fold("Losses by epoch", count, [Table.of(columns, "Pretraining by epoch")])
    figure, table = _figure(report, curve, updates, record), perplexity_table(report)
    return Section("Pretraining", [*warnings, figure, table, f"{INTERVALS} {COMPARE}", *absent, fold])


def _figure(report: PerplexityReport, curve: pd.DataFrame, updates: pd.DataFrame, record: RunRecord) -> Panels:
    """Perplexity by tokens seen, on a logarithmic scale, which is linear in the loss."""
    per_update = record.tokens / max(record.updates, 1)  # 0 updates for a checkpoint that is not trained further
    valid = curve_of(curve.set_index(curve["updates"] * per_update)["validation_loss"])
    train: Curve = []  # with next-sentence prediction the training loss includes that of the pairs: no perplexity
    if "next_sentence_accuracy" not in curve:
        train = thinned(curve_of(updates.set_index(updates["update"] * per_update)["training_loss"]), MOST_POINTS)
    perplexity = report.splits["valid"].measures["unigram"].perplexity_per_token
    unigram = [math.log(perplexity)] if perplexity else []  # nats per token
    known = [*(y for _, y in (*valid, *train)), *unigram]
    axes = Axes((0, max(record.tokens, 1)), (min(known) - 0.3, max(known) + 0.3))
    up = [(y, said) for y, said in _round_perplexities(axes.y[1]) if axes.y[0] <= y <= axes.y[1]]
    along = (0, record.tokens / 2, record.tokens) if record.tokens else (0,)
    drawn = [svg.grid(axes, [(x, _tokens(x)) for x in along], up), svg.line(axes, train)]
    for y in unigram:
        said = f"unigram {_perplexity(y)}"
        drawn += [svg.level(axes, y), svg.text(axes, axes.x[1], y, said, "end", dy=-6)]
    tips = [(x, f"{_tokens(x)}\ntraining loss {figure_text(y, 2)}, perplexity {_perplexity(y)}") for x, y in train]
    drawn += [*_dots(axes, valid), svg.tips(axes, tips)]
    label = "Perplexity of the validation text: " + ", ".join(_perplexity(y) for _, y in valid)
    note = "Perplexity per token (log scale, so linear in loss) by tokens seen. Dots: validation after each epoch."
    if unigram:
        note += " Dashed: a unigram model, which knows only token frequencies."
    if train:
        is_masked = "masked" in report.splits["valid"].measures
        note += f" Line: training{', where the masking rate may be higher' if is_masked else ''}."
    return Panels("pretraining", "", note, [Panel("", drawn, label, 260, place=0)], "wide")


def _round_perplexities(highest: float) -> Iterator[tuple[float, str]]:
    """Ticks of perplexity, as losses and as text: 1, 3, 10 and so on, or powers of ten, up to about the highest."""
    powers = math.floor(highest / math.log(10))
    step = max(1, math.ceil(powers / MOST_POWERS))
    for power in range(0, powers + 1, step):
        for base in (1, 3) if step == 1 else (1,):
            said = f"{base * 10**power:,}" if power < IN_FULL else f"{base}e+{power}"
            yield math.log(base * 10**power), said


def perplexity_by_epoch(curve: pd.DataFrame) -> list[Panels]:
    """The perplexity of the validation text from epoch 1 on, as the one before training would flatten the rest."""
    trained = curve.loc[curve["epoch"] > 0].set_index("epoch")[["perplexity"]].dropna()
    if trained.empty:
        return []
    (axes, grid), points = epoch_axes(trained), curve_of(trained["perplexity"])
    dots = [svg.dot(axes, x, y, radius=2.5, tip=f"epoch {x:g}: {figure_text(y, 2)}") for x, y in points]
    label = "Perplexity by epoch, " + ", ".join(figure_text(y, 2) for _, y in points)
    note = "Perplexity per token of the validation text, by epoch, from the first on."
    drawn = [grid, svg.line(axes, points), *dots]
    return [Panels("pretraining-epochs", "Pretraining", note, [Panel("", drawn, label, 260, place=0)], "wide")]


def _dots(axes: Axes, valid: Curve) -> Iterator[Markup]:
    """Validation after each epoch; the first, the last and those with room beside them have their perplexity."""
    places, last = [axes.across(x) for x, _ in valid], len(valid) - 1
    labelled = [last]
    for i in reversed(range(1, last)):
        if places[labelled[-1]] - places[i] >= ROOM:
            labelled.append(i)
    for i, (x, y) in enumerate(valid):
        anchor, dx, dy = ("start", 10, 4) if not i else ("end" if i == last else "middle", 0, -10)
        yield svg.dot(axes, x, y, "fill m1", 4.5)
        if i in (0, *labelled):
            yield svg.text(axes, x, y, _perplexity(y), anchor, "ink", dy, dx)


def perplexity_table(report: PerplexityReport) -> Table:
    """A row for each split and kind of perplexity, including the unigram baseline's."""
    rows = [
        (KINDS[name], part, *(_with_interval(split.measures[name], unit) for unit in UNITS))
        for part, split in report.splits.items()
        for name in KINDS
        if name in split.measures
    ]
    return Table(("perplexity", "split", "per token", "per word", "bits per byte"), rows, label="Perplexity")


def _with_interval(figures: PerplexityFigures, unit: str) -> TableCell:
    value, ends = getattr(figures, unit), figures.intervals.get(unit)
    low, high = (_figure_text(ends[end], unit) if ends else "" for end in ("low", "high"))
    return TableCell(_figure_text(value, unit), small=f"({low} – {high})" if ends and value is not None else "")


def _figure_text(value: float | None, unit: str) -> str:
    return figure_text(value, 3 if unit == "bits_per_byte" else 2, LARGE)


def _perplexity(loss: float) -> str:
    return exp_text(loss, 1 if loss < 4 else 0)


def _tokens(count: float) -> str:
    return f"{count_text(int(count))} tokens"
