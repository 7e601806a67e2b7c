"""The parts of a report: sections of text, tables, figures and code."""

import math
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

NOTHING = "–"  # stands for a figure that is not there
_FIGURES = re.compile(r"(?:[-–+≠\d.,±() %×⁻⁰¹²³⁴⁵⁶⁷⁸⁹]|(?<=\d)[eE](?=[-+\d])|(?<=\d)[KMB]|(?<=[\d)] )to(?= \d))*")


@dataclass(frozen=True)
class Table:
    """A table of plain text; columns of figures are aligned to the right."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    folded: str = ""  # the line that opens a folded table; not folded if empty
    bold: Set[tuple[int, int]] = frozenset()  # cells, by row and column

    def is_numeric(self, column: int) -> bool:
        """Whether a column has figures only, such as 1,234.5, 6.8e-233 or -0.5 ± 0.1 (0.3 – 0.7)."""
        return all(_FIGURES.fullmatch(row[column]) for row in self.rows)


@dataclass(frozen=True)
class Figure:
    """A drawing as SVG with its caption."""

    name: str  # its file's name, without ending
    svg: str
    caption: str


@dataclass(frozen=True)
class Code:
    """Lines shown as they are, such as Python to copy."""

    text: str
    language: str = "python"

    @property
    def fence(self) -> str:
        """What encloses it in Markdown: more backticks than stand together within it."""
        return "`" * max(3, 1 + max(map(len, re.findall("`+", self.text)), default=0))


@dataclass(frozen=True)
class Section:
    """A heading with paragraphs, tables, figures and code under it."""

    title: str
    blocks: Sequence[str | Table | Figure | Code]


def figure_text(value: float | None, digits: int = 2) -> str:
    """A figure with a fixed number of digits, a dash where there is none (None or NaN)."""
    return NOTHING if value is None or math.isnan(value) else f"{value:,.{digits}f}"


def interval_text(interval: Mapping[str, float], digits: int = 2) -> str:
    """An interval as shown behind its figure, in brackets."""
    return " ({} – {})".format(*(figure_text(interval[end], digits) for end in ("low", "high")))
