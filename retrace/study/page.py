"""Learning curves of a study: losses and scores by epoch, and the training loss by update, as its report drew them.

A study's page: what was published beside what Retrace found, and what is doubtful about the former.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from retrace.report.blocks import NOTHING, Figure, Section, Table
from retrace.report.figures import line_chart
from retrace.report.scores import points_by_epoch

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


PUBLISHED = "published"  # the profile that is the study as it was published
MARKS = {"beyond": " ≠", "outside, one seed": " (≠)"}  # by verdict
SMALL = (
    "This run is of the profile {profile}, not as published: on smaller models and less data. Its figures are NOT "
    "comparable with the published ones beside them; it shows that every part of the study runs, and what its report "
    "looks like. Only parameters and formulas are counted at the published size, and can be compared."
)
AS_PUBLISHED = (
    "This run is of the profile published: models and data of the published size, with the report's settings as far as "
    "it names them."
)
LEGEND = (
    "Of each figure the published one, as it was printed, and Retrace's with as many digits. After ±: the standard "
    "deviation over seeds; in brackets: a 95% interval, of a mean over seeds for the choice of examples and seeds, of "
    "one seed for the choice of examples alone, and where the examples behind a mean are not known for seeds alone "
    "(Student's). ≠ marks a published figure outside of it; figures that are counted have to be equal. (≠) marks one "
    "outside of the interval of one seed: another seed might have given it, so nothing follows. A dash: no figure."
)
GRADES = (
    "What is stated here follows from the report's own figures or from the published data by counting; an explanation "
    "with the word probably or perhaps is the likeliest that was found, and not certain."
)
NOTICES = (
    "Retrace's rules for its own figures, applied to the published ones: figures off their scale or at odds with one "
    "another."
)


@dataclass(frozen=True)
class ComparedTable:
    """A table of the report with Retrace's figures; cells are as study.json has them."""

    title: str
    section: str
    rows: Mapping[str, Mapping[str, Mapping[str, Any]]]  # row → column → cell
    best: Mapping[str, Set[tuple[str, str]]]  # "published" and "reproduced" → row and column of what is in bold


@dataclass(frozen=True)
class DoubtFacts:
    """Something wrong or doubtful in the report; evidence is a figure by what it is, none where it was not run."""

    about: str
    says: str
    finding: str
    evidence: Mapping[str, str]


def about_section(title: str, introduction: str, source: str, profile: str) -> Section:
    """What the page is of, and whether its figures can be compared."""
    run = AS_PUBLISHED if profile == PUBLISHED else SMALL.format(profile=profile)
    return Section("What this is", [f"{title}. {introduction} Source: {source}.", run])


def compared_sections(tables: Sequence[ComparedTable]) -> list[Section]:
    """A section for each that the tables name, in their order."""
    blocks: dict[str, list[str | Table]] = {}
    for table in tables:
        blocks.setdefault(table.section, [LEGEND] if not blocks else []).extend([f"{table.title}:", _compared(table)])
    return [Section(title, of) for title, of in blocks.items()]


def doubts_section(doubts: Sequence[DoubtFacts], noticed: Sequence[str]) -> Section | None:
    """What is wrong or doubtful, as those who read the report found, and as rules do; None where nothing was found."""
    blocks: list[str | Table] = [GRADES] if doubts else []
    for doubt in doubts:
        blocks.append(f"{doubt.about}: the report says {doubt.says}. {doubt.finding}")
        if doubt.evidence:
            rows = [(what, found or NOTHING) for what, found in doubt.evidence.items()]
            blocks.append(Table(("computed by Retrace", "figure"), rows))
    if noticed:
        blocks += [NOTICES, *(f"Retrace notices: {line}." for line in noticed)]
    return Section("What is wrong or doubtful in the report", blocks) if blocks else None


def set_up_sections(differences: Sequence[str], choices: Sequence[str]) -> list[Section]:
    """Where the run departs from the report, and what the report leaves open; no section where that is nothing."""
    titled = {"Where this run differs from the report's": differences, "What the report leaves open": choices}
    return [Section(title, lines) for title, lines in titled.items() if lines]


def published_text(cell: Mapping[str, Any]) -> str:
    """The published figure of a cell, as it was printed."""
    return cell["printed"] or NOTHING


def reproduced_text(cell: Mapping[str, Any]) -> str:
    """Retrace's figure, with spread, interval and mark as far as there are any."""
    return (cell["shown"] or NOTHING) + MARKS.get(cell["verdict"], "")


def _compared(table: ComparedTable) -> Table:
    columns = list(next(iter(table.rows.values())))
    header = ["", *(f"{column}, {whose}" for column in columns for whose in ("published", "Retrace"))]
    rows, bold = [], set()
    for place, (heading, cells) in enumerate(table.rows.items()):
        texts = [heading]
        for column in columns:
            for whose, text in (("published", published_text(cells[column])),
                                ("reproduced", reproduced_text(cells[column]))):  # fmt: skip
                if (heading, column) in table.best[whose]:
                    bold.add((place, len(texts)))
                texts.append(text)
        rows.append(texts)
    return Table(header, rows, bold=frozenset(bold))
