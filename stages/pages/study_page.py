"""A study's page: what was published beside what Retrace found, and what is doubtful about the former."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from stages.pages.content import Section, Table, figure_text, interval_text

PUBLISHED = "published"  # the profile that is the study as it was published
BEYOND, MARK = "beyond", " ≠"
SMALL = (
    "This run is of the profile {profile}, not as published: on smaller models and less data. Its figures are NOT "
    "comparable with the published ones beside them; it shows that every part of the study runs, and what its report "
    "looks like."
)
AS_PUBLISHED = "This run is of the profile published: the study's models, data and settings as its report has them."
LEGEND = (
    "Of each figure the published one and Retrace's. After ±: the standard deviation over seeds; in brackets: the 95% "
    "interval of Retrace's mean, for the choice of examples and seeds (bootstrap), or for that of seeds alone "
    "(Student's) where the examples behind it are not known. ≠ marks a published figure outside of it; figures that "
    "are counted have to be equal. A dash: no figure."
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
    """Something wrong in the report; evidence is a value, its interval or None, and digits, by what it is."""

    about: str
    says: str
    finding: str
    evidence: Mapping[str, tuple[float | None, Mapping[str, float] | None, int]]


def about_section(title: str, source: str, profile: str) -> Section:
    """What the page is of, and whether its figures can be compared."""
    run = AS_PUBLISHED if profile == PUBLISHED else SMALL.format(profile=profile)
    return Section("What this is", [f"{title}: a published study, run again. Source: {source}.", run])


def compared_sections(tables: Sequence[ComparedTable]) -> list[Section]:
    """A section for each that the tables name, in their order."""
    blocks: dict[str, list[str | Table]] = {}
    for table in tables:
        blocks.setdefault(table.section, [LEGEND] if not blocks else []).extend([f"{table.title}:", _compared(table)])
    return [Section(title, of) for title, of in blocks.items()]


def doubts_section(doubts: Sequence[DoubtFacts], noticed: Sequence[str]) -> Section | None:
    """What the report got wrong, as those who read it found, and as rules do; None where nothing was found."""
    blocks: list[str | Table] = []
    for doubt in doubts:
        blocks.append(f"{doubt.about}: the report says {doubt.says}. {doubt.finding}")
        if doubt.evidence:
            rows = [(what, _with_interval(*found)) for what, found in doubt.evidence.items()]
            blocks.append(Table(("computed by Retrace", "figure"), rows))
    if noticed:
        blocks += [NOTICES, *(f"Retrace notices: {line}." for line in noticed)]
    return Section("What the report got wrong", blocks) if blocks else None


def choices_section(choices: Sequence[str]) -> list[Section]:
    """What the report leaves open; no section where that is nothing."""
    return [Section("What the report leaves open", choices)] if choices else []


def published_text(cell: Mapping[str, Any]) -> str:
    """The published figure of a cell, after ± its standard deviation."""
    return _value(cell["published"], cell["digits"]) + _spread(cell.get("published_sd"), cell["digits"])


def reproduced_text(cell: Mapping[str, Any]) -> str:
    """Retrace's figure, with spread and interval as far as they are known."""
    spread = _spread(cell.get("sd"), cell["digits"])
    interval = interval_text(cell["interval"], cell["digits"]) if "interval" in cell else ""
    return _value(cell["reproduced"], cell["digits"]) + spread + interval


def _compared(table: ComparedTable) -> Table:
    columns = list(next(iter(table.rows.values())))
    header = ["", *(f"{column}, {whose}" for column in columns for whose in ("published", "Retrace"))]
    rows, bold = [], set()
    for place, (heading, cells) in enumerate(table.rows.items()):
        texts = [heading]
        for column in columns:
            mark = MARK if cells[column]["verdict"] == BEYOND else ""
            for whose, text in (("published", published_text(cells[column])),
                                ("reproduced", reproduced_text(cells[column]) + mark)):  # fmt: skip
                if (heading, column) in table.best[whose]:
                    bold.add((place, len(texts)))
                texts.append(text)
        rows.append(texts)
    return Table(header, rows, bold=frozenset(bold))


def _with_interval(value: float | None, interval: Mapping[str, float] | None, digits: int) -> str:
    return _value(value, digits) + (interval_text(interval, digits) if interval else "")


def _value(value: float | None, digits: int) -> str:
    """With so many digits, but never as 0 what is not."""
    if value and round(value, digits) == 0:
        return f"{value:.3g}"
    return figure_text(value, digits)


def _spread(sd: float | None, digits: int) -> str:
    return "" if sd is None else f" ± {figure_text(sd, digits)}"
