"""The parts of a page: sections of text, tables, figures, code and what is folded away. page.py writes them."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from markupsafe import Markup

from retrace.report.svg import Form, Plot

NOTHING = "–"  # stands for a figure that is not there
LONG = 40  # characters of a cell, from which on it is a text and no name
_FIGURES = re.compile(r"(?:[-−–+≠\d.,±() %×⁻⁰¹²³⁴⁵⁶⁷⁸⁹≈]|(?<=\d)[eE](?=[-+\d])|(?<=\d)[KMB]|(?<=[\d)] )to(?= [\d−-]))*")


@dataclass(frozen=True)
class Cell:
    """A cell of more than text."""

    text: str
    mark: int | None = None  # the method's place among the methods, for its shape
    bold: bool = False
    small: str = ""  # after the text
    strip: Markup | None = None  # a drawing before it
    colour: str = "mb"  # of the strip

    def __str__(self) -> str:
        return f"{self.text} {self.small}".strip()


@dataclass(frozen=True)
class Table:
    """A table; columns of figures are aligned to the right, and the last `apart` rows are sorted by themselves."""

    kind: ClassVar[str] = "table"
    header: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    label: str = "Table"  # for readers who do not see it, and the name of its file
    groups: Sequence[tuple[str, int]] = ()  # a line above the header: text and how many columns it spans
    apart: int = 0

    @classmethod
    def of(cls, columns: Mapping[str, Sequence[str]], label: str = "Table") -> "Table":
        """A table of columns by heading."""
        return cls(list(columns), list(zip(*columns.values(), strict=True)), label=label)

    def is_numeric(self, column: int) -> bool:
        """Whether a column has figures only, such as 1,234.5, 6.8e-233 or -0.5 ± 0.1 (0.3 – 0.7)."""
        return all(_FIGURES.fullmatch(str(row[column])) for row in self.rows)

    @property
    def styles(self) -> list[Markup]:
        """A class of each column: `n` of figures, `long` of texts, which need room."""
        columns = range(len(self.header))
        is_long = [any(len(str(row[column])) > LONG for row in self.rows) for column in columns]
        found = ["n" if self.is_numeric(column) else "long" if is_long[column] else "" for column in columns]
        return [Markup(' class="{}"').format(style) if style else Markup() for style in found]

    @property
    def names(self) -> list[str]:
        """The header with what stands above each column in front of it."""
        above = [text for text, span in self.groups for _ in range(span)] or [""] * len(self.header)
        return [f"{of}{', ' if ':' in of else ' '}{name}".strip() for of, name in zip(above, self.header, strict=True)]

    @property
    def file(self) -> str:
        """What it is called when it is downloaded."""
        return re.sub(r"\W+", "-", self.label.lower()).strip("-") + ".csv"

    @property
    def bodies(self) -> list[Sequence[Sequence[str | Cell]]]:
        """The rows, and behind them those that stand apart."""
        cut = len(self.rows) - self.apart
        return [self.rows[:cut], *([self.rows[cut:]] if self.apart else [])]


@dataclass(frozen=True)
class Panel:
    """A plot among others under its name."""

    name: str
    plot: Plot
    place: int | None = None  # of the method that it is of
    value: str = ""


@dataclass(frozen=True)
class Panels:
    """Plots side by side on the same scale; a file of figures/ has them all."""

    kind: ClassVar[str] = "panels"
    name: str  # of the file, without ending
    title: str
    note: str
    panels: Sequence[Panel]
    legend: Sequence[tuple[str, int]] = ()  # names and places of lines that share a plot

    @property
    def form(self) -> Form:
        """How wide the panels are."""
        return self.panels[0].plot.form


@dataclass(frozen=True)
class Code:
    """Lines shown as they are, such as Python to copy."""

    kind: ClassVar[str] = "code"
    text: str
    language: str = "python"

    @property
    def fence(self) -> str:
        """What encloses it in Markdown: more backticks than stand together within it."""
        return "`" * max(3, 1 + max(map(len, re.findall("`+", self.text)), default=0))


@dataclass(frozen=True)
class Fold:
    """Blocks that open by a click on their title; beside it stands the gist."""

    kind: ClassVar[str] = "fold"
    title: str
    gist: str
    blocks: Sequence["Block"]
    static: bool = False  # whether the script shows something better in its place


@dataclass(frozen=True)
class Browser:
    """Every prediction, searched and filtered by the script; `packed` is its data, as `pack` has it."""

    kind: ClassVar[str] = "browser"
    packed: str
    methods: Sequence[tuple[str, int]]


Block = str | Table | Panels | Code | Fold | Browser


@dataclass(frozen=True)
class Section:
    """A heading with blocks under it."""

    title: str
    blocks: Sequence[Block]

    @property
    def id(self) -> str:
        """Its address in the page."""
        return re.sub(r"\W+", "-", self.title.lower()).strip("-")


@dataclass(frozen=True)
class Chip:
    """A warning that opens to what it means and where it was seen."""

    text: str
    lines: Sequence[str]


@dataclass(frozen=True)
class Head:
    """What stands above the sections: sentences whose parts may be bold, facts by name, and warnings."""

    verdict: Sequence[Sequence[tuple[str, bool]]] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    chips: Sequence[Chip] = ()


def figure_text(value: float | None, digits: int = 2) -> str:
    """A figure with a fixed number of digits and a true minus sign, a dash where there is none (None or NaN)."""
    if value is None or not math.isfinite(value):
        return NOTHING
    return f"{round(value, digits) + 0.0:,.{digits}f}".replace("-", "−")


def signed(value: float, digits: int = 1) -> str:
    """A difference, with its sign; without one where it rounds to 0."""
    rounded = round(value, digits) or 0.0  # no negative zero
    return f"{rounded:{'+' if rounded else ''},.{digits}f}".replace("-", "−")
