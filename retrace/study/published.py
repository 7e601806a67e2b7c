"""A study's figures: published.yaml, what its report printed, and reports/study.json, the same next to Retrace's.

Figures are kept as they were printed, and Retrace's are shown with as many digits: 0.50, 109,482,240 and 0.13263%;
77.41 ± 2.81; 2.11E-05, 1.3e4 and 1.84 × 10⁻²; 110M and 1.23B; .05 and −0.3; the ranges 0.80-0.85, 12.5% – 13.5%
and 124 to 99; 1 hour, 46 minutes and 38 seconds.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import StrEnum
from math import isinf
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from retrace.core.records import Record
from retrace.core.settings import require, require_each_once
from retrace.report.blocks import NOTHING, figure_text
from retrace.statistics.scales import SCALES, SHARES, Better, Interval

PUBLISHED, STUDIES, RESULT = Path("published.yaml"), Path("studies"), Path("reports/study.json")
BARE = ("fraction", "correlation", "score")  # scales on which 0 and ±1 without a point are exact, not rounded
_NAME = re.compile(r"[A-Za-z0-9-]+")
_RAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_RAISE = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_NUMBER = re.compile(
    r"(?P<mantissa>[-+]?(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+))"
    r"(?:(?P<power>[eE]| × 10)(?P<exponent>[-+]?\d{1,3}|[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]{1,4}))?(?P<unit>[%KMB]?)",
    re.ASCII,
)
_PARTS = re.compile(r" ?± ?|(?<=\d) to (?=\d)|(?<=[\d%KMB]) ?[-–] ?(?=-?[\d.])")
_TIME = re.compile(r"(\d+) (hour|minute|second)s?")
_TIMES = re.compile(rf"{_TIME.pattern}(?:(?:, | and ){_TIME.pattern})*")
_SECONDS = {"hour": 3600, "minute": 60, "second": 1}
_THOUSANDS = {"K": 3, "M": 6, "B": 9}
HALF = 0.5 + 1e-9  # of the last digit, with room for float error


@dataclass(frozen=True)
class NumberFormat:
    """How a figure is written."""

    digits: int  # after the point; those of the mantissa where there is a power of ten
    power: str = ""  # what stands before the exponent: e, E or × 10
    unit: str = ""  # %, or nothing

    def text(self, value: float, std: float | None = None, interval: Mapping[str, float] | None = None) -> str:
        """The value, which is not rounded to 0; after ± its standard deviation, in brackets its interval."""
        is_small = bool(value) and not self.power and round(value, self.digits) == 0
        number = _significant if is_small else self._number
        text = number(value) + self.unit
        if std is not None:
            text += f" ± {number(std)}"
        if interval:
            text += f" ({number(interval['low'])} – {number(interval['high'])})"
        return text

    def _number(self, value: float) -> str:
        if not self.power:
            return figure_text(value, self.digits)
        if not value:
            return "0"
        mantissa, exponent = f"{value:.{self.digits}e}".split("e")
        if "×" in self.power:
            exponent = str(int(exponent)).translate(_RAISE)
        return f"{mantissa.replace('-', '−')}{self.power}{exponent}"


def _significant(value: float) -> str:
    return f"{'−' if value < 0 else ''}{abs(value):.3g}"


@dataclass(frozen=True)
class Printed:
    """A printed figure."""

    text: str
    value: float  # the first end of a range
    digits: int  # after the point; negative where it was rounded to tens or more
    form: NumberFormat
    std: float | None = None
    end: float | None = None  # the other end of a range


def printed(cell: float | str | None) -> Printed | None:
    """The figure in a cell of published.yaml; None if the report has none.

    Raises ValueError if the text is not a figure, or is a number in YAML, which has lost its trailing zeros.
    """
    if cell is None:
        return None
    if not isinstance(cell, str):
        raise ValueError(f"{cell!r} is not allowed; expected text in quotes, which keeps the printed digits")
    text = cell.strip()
    if _TIMES.fullmatch(text):
        seconds = sum(int(count) * _SECONDS[unit] for count, unit in _TIME.findall(text))
        return Printed(text, float(seconds), 0, NumberFormat(0, unit=" s"))
    numbers = [_NUMBER.fullmatch(part) for part in _PARTS.split(text.replace("−", "-"))]
    if not all(numbers) or len(numbers) > 2:
        raise ValueError(f"{cell!r} is not allowed; expected a figure as it was printed, such as 0.50 or 77.41 ± 2.81")
    first, *rest = [_read(text, number) for number in numbers if number]
    if any(isinf(each.value) for each in (first, *rest)):
        raise ValueError(f"{cell!r} is not allowed; expected a figure of less than 1e308")
    if not rest:
        return first
    if unit := rest[0].form.unit:  # as in 50-60%
        first = replace(first, form=replace(first.form, unit=unit))
    if "±" in text:
        return replace(first, std=rest[0].value)
    if rest[0].digits != first.digits:
        raise ValueError(f"{cell!r} is not allowed; expected both ends of a range with as many digits")
    return replace(first, end=rest[0].value)


def _read(text: str, number: re.Match[str]) -> Printed:
    unit, power = number["unit"], number["power"] or ""
    mantissa = number["mantissa"].replace(",", "")
    exponent = int((number["exponent"] or "0").translate(_RAISED)) + _THOUSANDS.get(unit, 0)
    exact = Decimal(mantissa).scaleb(exponent)
    behind_point = len(mantissa.partition(".")[2])
    digits = -int(exact.as_tuple().exponent)
    form = NumberFormat(behind_point if power else max(0, digits), power, unit if unit == "%" else "")
    return Printed(text, float(exact), digits, form)


@dataclass(frozen=True)
class Row:
    """A row: the printed figures, and the addresses of Retrace's.

    `figures` has an address for each column, None if Retrace has no such figure; or it is one pattern for all
    columns, in which {column} stands for the value that `columns` has for the heading.
    """

    figures: tuple[str | None, ...] | str
    published: tuple[float | str | None, ...]  # `printed` refuses numbers, and says what to do


@dataclass(frozen=True)
class PublishedCell:
    """One figure of a table."""

    row: str
    column: str
    address: str | None
    published: Printed | None
    scale: str

    def __post_init__(self) -> None:
        if self.published is not None and self.published.form.unit == "%" and not self.scale.startswith("percent"):
            raise ValueError(f"{self.published.text!r} is not allowed; % needs the scale percent or percentage")

    @property
    def digits(self) -> int:
        """The digits after the point in which Retrace's figure has to agree: those that were printed.

        A share printed as a bare 0 or 1 is exact, not rounded, and has the digits of its scale: 0 means none at all.
        So has a fraction of 0.0 or 1.0, which is how Python prints them.
        """
        scaled, published = SCALES[self.scale].digits, self.published
        if published is None:
            return scaled
        exact = (0, 1, -1) if self.scale in BARE else (0,) if self.scale in SHARES else ()
        bare = (0, 1) if self.scale == "fraction" else (0,)  # digits
        return scaled if published.value in exact and published.digits in bare else published.digits

    @property
    def half(self) -> float:
        """Half of the last of these digits, the largest rounding error of the printed figure."""
        return HALF * 10.0**-self.digits

    @property
    def form(self) -> NumberFormat:
        """How Retrace's figure is written next to the published one."""
        form = NumberFormat(0) if self.published is None else self.published.form
        return form if form.power else replace(form, digits=max(0, self.digits))


@dataclass(frozen=True)
class PublishedTable:
    """A table of the report."""

    name: str
    title: str
    scale: str | dict[str, str]  # of all figures, or by the headings of the columns
    columns: tuple[str, ...] | dict[str, str]  # headings; or headings and what replaces {column} in addresses
    rows: dict[str, Row]
    section: str = "Published and reproduced"  # heading under which the table stands
    best: Literal["column"] | None = None  # the best figure of each column is in bold

    def __post_init__(self) -> None:
        require(_NAME.fullmatch(self.name) is not None, "name", self.name, "expected letters, digits and dashes")
        for key, headings in (("rows", list(self.rows)), ("columns", list(self.columns))):
            require(bool(headings), key, headings, "expected at least one")
            require_each_once(key, headings)
        for scale in [self.scale] if isinstance(self.scale, str) else self.scale.values():
            require(scale in SCALES, "scale", scale, f"expected one of {', '.join(SCALES)}")
        if isinstance(self.scale, Mapping):
            require(set(self.scale) == set(self.columns), "scale", list(self.scale), "expected all columns")
        list(self.cells())  # raises where a figure is wrong

    def cells(self) -> Iterator[PublishedCell]:
        """Every figure, row by row."""
        for heading, row in self.rows.items():
            addresses = row.figures
            if isinstance(addresses, str):
                names = self.columns.values() if isinstance(self.columns, dict) else ()
                allowed = "give each heading a value for {column}, as figures is a pattern"
                require(bool(names), "columns", list(self.columns), allowed)
                addresses = tuple(addresses.replace("{column}", name) for name in names)
            for key, cells in (("figures", addresses), ("published", row.published)):
                allowed = f"expected {len(self.columns)}, one for each column"
                require(len(cells) == len(self.columns), f"{key} of {heading}", f"{len(cells)} figures", allowed)
            for column, address, figure in zip(self.columns, addresses, row.published, strict=True):
                scale = self.scale if isinstance(self.scale, str) else self.scale[column]
                try:
                    yield PublishedCell(heading, column, address, printed(figure), scale)
                except ValueError as error:
                    raise ValueError(f"{heading}: {column}: {error}") from None


@dataclass(frozen=True)
class Doubt:
    """A published figure that cannot be right, or does not mean what the report says."""

    about: str  # a table, TABLE/ROW or TABLE/ROW/COLUMN
    says: str  # what the report says
    finding: str
    figures: dict[str, str] = field(default_factory=dict)  # evidence: what it is → its address


@dataclass(frozen=True)
class PublishedStudy:
    """All of published.yaml."""

    title: str
    source: str
    tables: tuple[PublishedTable, ...]
    introduction: str = "A published study, run again."
    doubts: tuple[Doubt, ...] = ()
    differences: tuple[str, ...] = ()  # where Retrace does something else than the report
    choices: tuple[str, ...] = ()  # what Retrace does where the report is silent
    first_samples: int | None = None  # how many of the first predictions are shown; null: a sample of all
    sections: tuple[dict, ...] = ()  # about parameters and memory; read by `retrace.study.sections`

    def __post_init__(self) -> None:
        names = [table.name for table in self.tables]
        require_each_once("tables", names)
        cells = [(table.name, cell) for table in self.tables for cell in table.cells()]
        places = {*names, *(f"{name}/{cell.row}" for name, cell in cells)}
        places |= {f"{name}/{cell.row}/{cell.column}" for name, cell in cells}
        for number, doubt in enumerate(self.doubts):
            allowed = f"expected a table, TABLE/ROW or TABLE/ROW/COLUMN; tables: {', '.join(names)}"
            require(doubt.about in places, f"doubts[{number}].about", doubt.about, allowed)


class Verdict(StrEnum):
    """How a published figure and Retrace's agree."""

    EXACT = "exact"
    WITHIN = "within"
    IN_RANGE = "in the range"
    BEYOND = "beyond"
    ONE_SEED = "outside, one seed"
    UNKNOWN = "no interval"
    NOT_PUBLISHED = "no figure published"
    NOT_MEASURED = "not measured"
    OF_MACHINE = "of this machine"


MEANINGS = {
    Verdict.EXACT: "equal to the last printed digit",
    Verdict.WITHIN: "the published figure lies in Retrace's interval",
    Verdict.IN_RANGE: "Retrace's figure lies in the printed range",
    Verdict.BEYOND: "the published figure lies outside Retrace's interval, or is not the number that Retrace counts",
    Verdict.ONE_SEED: "it lies outside the interval of this one seed's figure; how much seeds vary is not known",
    Verdict.UNKNOWN: "they differ, and how Retrace's figure would vary is unknown",
    Verdict.NOT_PUBLISHED: "the report has no such figure",
    Verdict.NOT_MEASURED: "Retrace has no such figure: the study does not run it, or the figure is undefined",
    Verdict.OF_MACHINE: "times and memory, which are not compared",
}
MARKS = {Verdict.BEYOND: " ≠", Verdict.ONE_SEED: " (≠)"}
SMALL = (
    "This is the small run, not the published one: smaller models and less data. Its figures are NOT comparable with "
    "the published ones beside them; it shows that every part of the study runs, and what its report looks like. Only "
    "parameters and formulas are of the published size, and can be compared."
)
AS_PUBLISHED = (
    "This is the full run: models, data and settings are as published, as far as the report names them, except for the "
    "differences that the study's page lists."
)


class ComparedCell(Record):
    """A cell of a table, both figures on the table's scale; None if there is no figure."""

    verdict: Verdict
    scale: str
    printed: str | None  # the published figure as text
    shown: str | None  # Retrace's figure as text, with as many digits
    published: float | None
    reproduced: float | None
    published_std: float | None = None
    published_end: float | None = None  # of a range, whose other end is `published`
    std: float | None = None  # over seeds
    interval: Interval | None = None
    better: Better | None = Field(default=None, exclude=True)  # which way is better, where the metric says so

    @property
    def published_text(self) -> str:
        """The published figure as it was printed; a dash if there is none."""
        return self.printed or NOTHING

    @property
    def reproduced_text(self) -> str:
        """Retrace's figure, with its standard deviation, interval and mark where it has them."""
        return (self.shown or NOTHING) + MARKS.get(self.verdict, "")

    @model_serializer(mode="wrap")
    def _without_times(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Times and memory, which vary from run to run, are on the page and not in study.json."""
        found = handler(self)
        if self.verdict == Verdict.OF_MACHINE:
            found |= {"shown": None, "reproduced": None}
        return found


class ComparedTable(Record):
    """A table of the report with Retrace's figures."""

    title: str
    rows: dict[str, dict[str, ComparedCell]]  # row → column → cell
    section: str = Field(default="", exclude=True)  # of the page
    # "published" and "reproduced" → row and column of the best figures
    best: dict[str, set[tuple[str, str]]] = Field(default={}, exclude=True)


class StudyResult(Record):
    """All tables of a study, by name."""

    title: str
    source: str
    small: bool  # a run with tiny models and little data
    tables: dict[str, ComparedTable]

    def cells(self) -> Iterator[tuple[str, str, str, ComparedCell]]:
        """Table, row, column and cell of every figure."""
        for name, table in self.tables.items():
            for row, cells in table.rows.items():
                for column, cell in cells.items():
                    yield name, row, column, cell

    @property
    def comparable(self) -> str:
        """Says whether these figures can be compared with the published ones."""
        return SMALL if self.small else AS_PUBLISHED
