"""published.yaml: the figures that a study's report printed, where Retrace's stand, and what is doubtful about them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from stages.harness.settings import build_file, require
from stages.metrics.printed import Form, Printed, half_of_last, printed
from stages.metrics.scales import SCALES, SHARES

PUBLISHED = Path("published.yaml")
SECTION = "Published and reproduced"
_NAME = re.compile(r"[A-Za-z0-9-]+")

BETWEEN = " to "  # the addresses of both ends of a range
BARE = ("fraction", "correlation", "score")  # of which 0 and 1 without a point say all or nothing, and not 0.4 or 0.6
PrintedCell = float | str | None  # as it stands in published.yaml; a number is refused, with what to do


@dataclass(frozen=True)
class Row:
    """A row whose figures are at addresses of their own."""

    figures: tuple[str | None, ...]  # where Retrace's figures are; none where it has no such figure
    published: tuple[PrintedCell, ...]


@dataclass(frozen=True)
class Cell:
    """One figure of a table, or the two ends of a range."""

    row: str
    column: str
    address: str | None
    published: Printed | None
    scale: str

    @property
    def digits(self) -> int:
        """How many digits after the point Retrace's figure has to agree in: those that were printed.

        A bare 0 or 1 of a share has those of its scale: nothing at all is not the same as less than a half.
        """
        scaled = SCALES[self.scale].digits
        if self.published is None:
            return scaled
        is_bare = not self.published.digits and (
            self.scale in BARE or (self.scale in SHARES and not self.published.value)
        )
        return scaled if is_bare else self.published.digits

    @property
    def form(self) -> Form:
        """How Retrace's figure is written beside the published one."""
        form = Form(0) if self.published is None else self.published.form
        return form if form.power else replace(form, digits=max(0, self.digits))

    def equals(self, printed: float, value: float) -> bool:
        """Whether a value is the printed one to the last digit."""
        return abs(value - printed) <= half_of_last(self.digits)


@dataclass(frozen=True)
class PublishedTable:
    """A table of the report.

    Either each row has its figures, or `figures` is one pattern for all, in which {row} and {column} stand for what
    `rows` and `columns` say beside their headings, and `published` has the rows.
    """

    name: str
    title: str
    scale: str | dict[str, str]  # of all figures, or by the headings of the columns or of the rows
    columns: tuple[str, ...] | dict[str, str]
    rows: dict[str, Row | str]
    figures: str | None = None
    published: dict[str, tuple[PrintedCell, ...]] | None = None
    section: str = SECTION  # tables of one section stand together
    best: Literal["column", "row"] | None = None  # where the best figure is in bold

    def __post_init__(self) -> None:
        require(_NAME.fullmatch(self.name) is not None, "name", self.name, "expected letters, digits and dashes")
        for field in ("rows", "columns"):
            headings = list(getattr(self, field))
            require(bool(headings), field, headings, "expected at least one")
            require(all(isinstance(heading, str) for heading in headings), field, headings, "expected text as headings")
            require(len(set(headings)) == len(headings), field, headings, "expected each heading once")
        self._check_scales()
        self._check_rows()
        for cell in self.cells():  # says what is no figure
            assert cell.scale

    def cells(self) -> Iterator[Cell]:
        """Every figure, row by row."""
        for row in self.rows:
            addresses, figures = self._row(row)
            for column, address, published in zip(self.columns, addresses, figures, strict=True):
                try:
                    cell = Cell(row, column, address, printed(published), self._scale(row, column))
                    _check(cell)
                except ValueError as error:
                    raise ValueError(f"{row}: {column}: {error}") from None
                yield cell

    def _row(self, heading: str) -> tuple[Sequence[str | None], Sequence[PrintedCell]]:
        row = self.rows[heading]
        if isinstance(row, Row):
            return row.figures, row.published
        assert isinstance(self.columns, dict)
        assert self.figures is not None
        assert self.published is not None
        filled = self.figures.replace("{row}", row)
        return [filled.replace("{column}", name) for name in self.columns.values()], self.published[heading]

    def _scale(self, row: str, column: str) -> str:
        if isinstance(self.scale, str):
            return self.scale
        return self.scale[column] if column in self.scale else self.scale[row]

    def _check_scales(self) -> None:
        scales = [self.scale] if isinstance(self.scale, str) else self.scale.values()
        for scale in scales:
            require(scale in SCALES, "scale", scale, f"expected one of {', '.join(SCALES)}")
        if isinstance(self.scale, Mapping):
            allowed = [set(self.columns), set(self.rows)]
            require(set(self.scale) in allowed, "scale", list(self.scale), "expected all columns, or all rows")

    def _check_rows(self) -> None:
        width = len(self.columns)
        if self.figures is None:
            require(self.published is None, "published", "…", "expected it in each row, as figures has no pattern")
            for heading, row in self.rows.items():
                require(isinstance(row, Row), f"rows.{heading}", row, "expected figures and published")
        else:
            require(isinstance(self.columns, dict), "columns", list(self.columns), "expected heading: {column}")
            require(self.published is not None, "published", None, "expected the figures of each row")
            for heading, row in self.rows.items():
                require(isinstance(row, str), f"rows.{heading}", row, "expected what stands for {row}")
            given = self.published or {}
            require(list(given) == list(self.rows), "published", list(given), f"expected {', '.join(self.rows)}")
        for heading in self.rows:
            for field, cells in zip(("figures", "published"), self._row(heading), strict=True):
                count = f"expected {width}, as there are columns"
                require(len(cells) == width, f"{field} of {heading}", f"{len(cells)} figures", count)


def _check(cell: Cell) -> None:
    if cell.published is not None and cell.published.form.unit and not cell.scale.startswith("percent"):
        raise ValueError(f"{cell.published.text!r} is not allowed; % is of the scales percent and percentage")
    ends = (cell.address or "").split(BETWEEN)
    if len(ends) > 2 or (len(ends) == 2 and cell.published is not None and cell.published.end is None):
        raise ValueError(f"{cell.address}: two addresses are of a range, such as 124 to 99")


@dataclass(frozen=True)
class Doubt:
    """A published figure that cannot be right or does not mean what it is said to."""

    about: str  # a table, TABLE/ROW or TABLE/ROW/COLUMN
    says: str  # what the report says
    finding: str
    figures: dict[str, str] | None = None  # what is shown as evidence → its address


@dataclass(frozen=True)
class PublishedCurves:
    """A figure of the report that shows learning curves, of which it prints no values."""

    title: str
    task: str
    methods: tuple[str, ...]
    figures: tuple[str, ...]  # columns of the task's learning curve

    def __post_init__(self) -> None:
        for field in ("methods", "figures"):
            require(bool(getattr(self, field)), field, [], "expected at least one")


@dataclass(frozen=True)
class PublishedStudy:
    """All of published.yaml."""

    title: str
    source: str
    tables: tuple[PublishedTable, ...]
    curves: tuple[PublishedCurves, ...] = ()
    introduction: str = "A published study, run again."
    doubts: tuple[Doubt, ...] = ()
    differences: tuple[str, ...] = ()  # where Retrace does other than the report says
    choices: tuple[str, ...] = ()  # what Retrace does where the report is silent
    sections: tuple[dict, ...] = ()  # about parameters and memory; `stages.training.study_sections` reads them

    def __post_init__(self) -> None:
        names = [table.name for table in self.tables]
        require(len(set(names)) == len(names), "tables", names, "expected each name once")
        for place, doubt in enumerate(self.doubts):
            require(doubt.about in self._places(), f"doubts[{place}].about", doubt.about,
                    f"expected a table, TABLE/ROW or TABLE/ROW/COLUMN; tables: {', '.join(names)}")  # fmt: skip

    def _places(self) -> set[str]:
        cells = [(table.name, cell) for table in self.tables for cell in table.cells()]
        rows = {f"{name}/{cell.row}" for name, cell in cells}
        return {name for name, _ in cells} | rows | {f"{name}/{cell.row}/{cell.column}" for name, cell in cells}


def read_published(path: Path = PUBLISHED) -> PublishedStudy:
    """A study's published figures.

    Raises InputError, which names the file and the key, where something in it is wrong.
    """
    return build_file(PublishedStudy, path)
