"""What a study found: each published figure beside Retrace's, with a verdict. This is reports/study.json."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from retrace.core.files import read_object, write_json
from retrace.report.blocks import NOTHING
from retrace.statistics.intervals import Interval

RESULT = Path("reports/study.json")
EXACT, WITHIN, IN_RANGE, BEYOND, ONE_SEED = "exact", "within", "in the range", "beyond", "outside, one seed"
UNKNOWN, NOT_PUBLISHED, NOT_RUN, OF_MACHINE = "no interval", "no figure published", "not run", "of this machine"
VERDICTS = {
    EXACT: "equal to the last printed digit",
    WITHIN: "the published figure lies in Retrace's interval",
    IN_RANGE: "Retrace's figure lies in the printed range",
    BEYOND: "the published figure lies outside Retrace's interval",
    ONE_SEED: "it lies outside the interval of this one seed's figure; how seeds vary is unknown",
    UNKNOWN: "they differ, and how Retrace's figure would vary is unknown",
    NOT_PUBLISHED: "the report has no such figure",
    NOT_RUN: "Retrace has no such figure, as the study does not run what it is about",
    OF_MACHINE: "times and memory, which are not compared",
}
MARKS = {BEYOND: " ≠", ONE_SEED: " (≠)"}
SMALL = (
    "This is the small run, not the published one: smaller models and less data. Its figures are NOT comparable with "
    "the published ones beside them; it shows that every part of the study runs, and what its report looks like. Only "
    "parameters and formulas are counted at the published size, and can be compared."
)
AS_PUBLISHED = (
    "This run is as published: models and data of the published size, with the report's settings as far as it names "
    "them."
)
ALWAYS = ("verdict", "scale", "printed", "shown", "published", "reproduced")  # in study.json, also where there is none


@dataclass(frozen=True)
class ComparedCell:
    """A cell of a table, both figures on the table's scale; None where there is no such figure."""

    verdict: str
    scale: str
    printed: str | None = None  # the published figure as text
    shown: str | None = None  # Retrace's, with as many digits
    published: float | None = None
    reproduced: float | None = None
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

    def to_json(self) -> dict[str, Any]:
        """The cell in study.json, without times and memory, which differ from run to run."""
        kept = self
        if self.verdict == OF_MACHINE:
            kept = replace(self, shown=None, reproduced=None, reproduced_end=None, std=None, interval=None)
        return {name: value for name, value in asdict(kept).items() if name in ALWAYS or value is not None}


@dataclass(frozen=True)
class ComparedTable:
    """A table of the report with Retrace's figures."""

    title: str
    rows: dict[str, dict[str, ComparedCell]]  # row → column → cell
    section: str = ""  # of the page
    best: dict[str, set[tuple[str, str]]] = field(default_factory=dict)  # published, reproduced → rows and columns


@dataclass(frozen=True)
class StudyResult:
    """All tables of a study, by name."""

    title: str
    source: str
    small: bool  # a run on tiny models and little data
    tables: dict[str, ComparedTable]

    @classmethod
    def read(cls, path: Path = RESULT) -> "StudyResult":
        """The result of an earlier run.

        Raises FileNotFoundError where the file is absent, InputError where it is not json.
        """
        found, tables = read_object(path), {}
        for name, table in found["tables"].items():
            rows = {row: {column: ComparedCell(**cell) for column, cell in cells.items()}
                    for row, cells in table["rows"].items()}  # fmt: skip
            tables[name] = ComparedTable(table["title"], rows)
        return cls(found["title"], found["source"], found["small"], tables)

    def write(self, path: Path = RESULT) -> None:
        """Write study.json."""
        write_json(path, self.to_json())

    def to_json(self) -> dict[str, Any]:
        """The content of study.json."""
        tables = {name: {"title": table.title, "rows": {
            row: {column: cell.to_json() for column, cell in cells.items()} for row, cells in table.rows.items()
        }} for name, table in self.tables.items()}  # fmt: skip
        return {"title": self.title, "source": self.source, "small": self.small, "tables": tables}

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
