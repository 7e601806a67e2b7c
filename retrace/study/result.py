"""What a study found: each published figure beside Retrace's, with a verdict. This is reports/study.json."""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from retrace.core.records import Record
from retrace.report.blocks import NOTHING
from retrace.statistics.intervals import Interval

RESULT = Path("reports/study.json")


class Verdict(StrEnum):
    """How a published figure and Retrace's go together."""

    EXACT = "exact"
    WITHIN = "within"
    IN_RANGE = "in the range"
    BEYOND = "beyond"
    ONE_SEED = "outside, one seed"
    UNKNOWN = "no interval"
    NOT_PUBLISHED = "no figure published"
    NOT_RUN = "not run"
    OF_MACHINE = "of this machine"


MEANINGS = {
    Verdict.EXACT: "equal to the last printed digit",
    Verdict.WITHIN: "the published figure lies in Retrace's interval",
    Verdict.IN_RANGE: "Retrace's figure lies in the printed range",
    Verdict.BEYOND: "the published figure lies outside Retrace's interval",
    Verdict.ONE_SEED: "it lies outside the interval of this one seed's figure; how seeds vary is unknown",
    Verdict.UNKNOWN: "they differ, and how Retrace's figure would vary is unknown",
    Verdict.NOT_PUBLISHED: "the report has no such figure",
    Verdict.NOT_RUN: "Retrace has no such figure, as the study does not run what it is about",
    Verdict.OF_MACHINE: "times and memory, which are not compared",
}
MARKS = {Verdict.BEYOND: " ≠", Verdict.ONE_SEED: " (≠)"}
SMALL = (
    "This is the small run, not the published one: smaller models and less data. Its figures are NOT comparable with "
    "the published ones beside them; it shows that every part of the study runs, and what its report looks like. Only "
    "parameters and formulas are counted at the published size, and can be compared."
)
AS_PUBLISHED = (
    "This run is as published: models and data of the published size, with the report's settings as far as it names "
    "them."
)


class ComparedCell(Record):
    """A cell of a table, both figures on the table's scale; None where there is no such figure."""

    verdict: Verdict
    scale: str
    printed: str | None  # the published figure as text
    shown: str | None  # Retrace's, with as many digits
    published: float | None
    reproduced: float | None
    published_std: float | None = None
    published_end: float | None = None  # of a range, whose other end is `published`
    reproduced_end: float | None = None
    std: float | None = None  # over seeds
    interval: Interval | None = None

    @property
    def published_text(self) -> str:
        """The published figure as it was printed."""
        return self.printed or NOTHING

    @property
    def reproduced_text(self) -> str:
        """Retrace's figure, with its spread, interval and mark where it has them."""
        return (self.shown or NOTHING) + MARKS.get(self.verdict, "")

    @model_serializer(mode="wrap")
    def _without_times(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Times and memory differ from run to run, so they stand on the page and not in study.json."""
        found = handler(self)
        if self.verdict == Verdict.OF_MACHINE:
            found |= {"shown": None, "reproduced": None}
            found.pop("reproduced_end", None)
        return found


class ComparedTable(Record):
    """A table of the report with Retrace's figures."""

    title: str
    rows: dict[str, dict[str, ComparedCell]]  # row → column → cell
    section: str = Field(default="", exclude=True)  # of the page
    # `published` and `reproduced` → row and column of the best figures
    best: dict[str, set[tuple[str, str]]] = Field(default={}, exclude=True)


class StudyResult(Record):
    """All tables of a study, by name."""

    title: str
    source: str
    small: bool  # a run on tiny models and little data
    tables: dict[str, ComparedTable]

    def cells(self) -> Iterator[tuple[str, str, str, ComparedCell]]:
        """Table, row, column and cell of every figure."""
        for name, table in self.tables.items():
            for row, cells in table.rows.items():
                for column, cell in cells.items():
                    yield name, row, column, cell

    @property
    def comparable(self) -> str:
        """Whether these figures can be compared with the published ones, in words."""
        return SMALL if self.small else AS_PUBLISHED
