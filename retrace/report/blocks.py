"""The parts of a page: sections of text, tables, figures, code and folds. page.py renders them."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from markupsafe import Markup

Form = Literal["small", "list", "wide", "rank"]  # of plots; page.css and page.py give each its margins
NOTHING = "–"  # stands for a missing figure
NOISE = 9  # digits after the point; beyond them figures differ only by floating-point noise
EXACT = 1e15  # from here on a float cannot hold all the digits before the point
LONG = 40  # characters from which a cell is prose and needs room
_FIGURES = re.compile(
    r"(?:[-−–+≠<\d.,±() %×⁻⁰¹²³⁴⁵⁶⁷⁸⁹≈]|(?<=\d)[eE](?=[-+\d])|(?<=\d)[KMB]|(?<=[\d)] )to(?= [-−+\d]))*"
)

_PARTS = re.compile(r"\d([.-])\d+\1\d")  # of a date or a version


@dataclass(frozen=True)
class TableCell:
    """A table cell that is more than plain text."""

    text: str
    mark: int | None = None  # the method's place among the methods, which gives its shape and colour
    bold: bool = False
    small: str = ""  # after the text
    strip: Markup | None = None  # a drawing before the text
    colour: str = "mb"  # the class of the drawing

    def __str__(self) -> str:
        return f"{self.text} {self.small}".strip()


@dataclass(frozen=True)
class Table:
    """A table; columns of figures are right-aligned, and the last `apart` rows are a body that is sorted by itself."""

    kind: ClassVar[str] = "table"
    header: Sequence[str]
    rows: Sequence[Sequence[str | TableCell]]
    label: str = "Table"  # for screen readers, and the name of the download
    groups: Sequence[tuple[str, int]] = ()  # a line above the header: texts and how many columns each spans
    apart: int = 0

    @classmethod
    def of(cls, columns: Mapping[str, Sequence[str]], label: str) -> "Table":
        """A table of columns by heading."""
        return cls(list(columns), list(zip(*columns.values(), strict=True)), label)

    def is_numeric(self, column: int) -> bool:
        """Whether a column has only figures, such as 1,234.5, 6.8e-233 or -0.5 ± 0.1 (0.3 – 0.7); not dates."""
        cells = [str(row[column]) for row in self.rows]
        return all(_FIGURES.fullmatch(cell) and not _PARTS.search(cell) for cell in cells)

    @property
    def styles(self) -> list[str]:
        """The CSS class of each column: `n` for figures, `long` for prose, "" for the rest."""
        columns = range(len(self.header))
        is_long = [any(len(str(row[column])) > LONG for row in self.rows) for column in columns]
        return ["n" if self.is_numeric(column) else "long" if is_long[column] else "" for column in columns]

    @property
    def names(self) -> list[str]:
        """The header, each column preceded by the text of its group."""
        above = [text for text, span in self.groups for _ in range(span)] or [""] * len(self.header)
        return [
            f"{group}{', ' if ':' in group else ' '}{name}".strip()
            for group, name in zip(above, self.header, strict=True)
        ]

    @property
    def file(self) -> str:
        """The name of the download."""
        return f"{_slug(self.label)}.csv"

    @property
    def bodies(self) -> list[Sequence[Sequence[str | TableCell]]]:
        """The rows, split where the last `apart` begin."""
        cut = len(self.rows) - self.apart
        return [self.rows[:cut], *([self.rows[cut:]] if self.apart else [])]


@dataclass(frozen=True)
class Panel:
    """A plot, one of several, under its name."""

    name: str
    drawn: Sequence[Markup]  # without a frame
    label: str  # what it shows, in words and figures
    height: int = 104  # px, without margins
    place: int | None = None  # the method's, which gives its shape and colour
    value: str = ""


@dataclass(frozen=True)
class Panels:
    """Plots side by side on the same scale, which share a file in figures/."""

    kind: ClassVar[str] = "panels"
    name: str  # of the file, without ending
    title: str
    note: str
    panels: Sequence[Panel]
    form: Form = "small"


@dataclass(frozen=True)
class Code:
    """Preformatted lines, such as Python to copy."""

    kind: ClassVar[str] = "code"
    text: str
    language: str = "python"

    @property
    def fence(self) -> str:
        """The Markdown fence: more backticks than any run of them in the text."""
        return "`" * max(3, 1 + max(map(len, re.findall("`+", self.text)), default=0))


@dataclass(frozen=True)
class Fold:
    """Collapsed blocks; the gist is shown next to the title."""

    kind: ClassVar[str] = "fold"
    title: str
    gist: str
    blocks: Sequence["Block"]
    static: bool = False  # hidden where the script shows the browser of predictions


@dataclass(frozen=True)
class Browser:
    """Every prediction, to search and filter; `packed` is the data of the script, as `pack` encodes it.

    Without the script, and in Markdown, there is neither the browser nor its note.
    """

    kind: ClassVar[str] = "browser"
    packed: str
    methods: Sequence[tuple[str, int]]  # names and places
    note: str = ""


Block = str | Table | Panels | Code | Fold | Browser


@dataclass(frozen=True)
class Section:
    """A heading with blocks under it."""

    title: str
    blocks: Sequence[Block]

    @property
    def id(self) -> str:
        """Its anchor in the page, unless that is taken."""
        return _slug(self.title)


@dataclass(frozen=True)
class Head:
    """What stands above the sections."""

    verdict: Sequence[str] = ()  # sentences, ** around what is bold
    facts: Mapping[str, str] = field(default_factory=dict)  # by name
    warnings: Mapping[str, Sequence[str]] = field(default_factory=dict)  # title → what it means and where it was seen


def figure_text(value: float | None, digits: int = 2, large: float = EXACT) -> str:
    """A figure with a fixed number of digits and a true minus sign; a dash for None, NaN and infinity.

    From `large` on it is in scientific notation: the perplexity of a model that diverged may have a hundred digits.
    """
    if value is None or not math.isfinite(value):
        return NOTHING
    if abs(value) >= large:
        return f"{value:.2e}".replace("-", "−")
    return f"{_rounded(value, digits) + 0.0:,.{digits}f}".replace("-", "−")


def signed(value: float, digits: int = 1) -> str:
    """A difference with its sign; without one if it rounds to 0."""
    return ("+" if math.isfinite(value) and _rounded(value, digits) > 0 else "") + figure_text(value, digits)


def _rounded(value: float, digits: int) -> float:
    """Rounded without floating-point noise first, so that 1.25 and 1.2500000000000011 round alike."""
    return round(round(value, max(NOISE, digits)), digits)


def _slug(text: str) -> str:
    return re.sub(r"\W+", "-", text.lower()).strip("-")
