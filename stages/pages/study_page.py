"""A study's page: what was published beside what Retrace found, and what is doubtful about the former."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from stages.pages.content import NOTHING, Section, Table

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
