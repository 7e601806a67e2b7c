"""The parts of a report, sections of text, tables, figures and code; and the report as HTML and Markdown.

The HTML is one file that needs nothing else: no script, no font, no picture from elsewhere. Markdown links the figures
from a folder beside it. All text is escaped; only figures, which the project draws itself, are put in as they are.
"""

import math
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from retrace.core.files import atomic_folder, write_text

REPORTS = Path("reports")
WRITTEN = f"the report is in {REPORTS / 'report.html'} and {REPORTS / 'report.md'}"
NOTHING = "–"  # stands for a figure that is not there
TEMPLATES = Path(__file__).parent
MARKDOWN = str.maketrans({character: f"\\{character}" for character in "\\`*_[]<>|"} | {"\n": " "})
_FIGURES = re.compile(r"(?:[-–+≠\d.,±() %×⁻⁰¹²³⁴⁵⁶⁷⁸⁹]|(?<=\d)[eE](?=[-+\d])|(?<=\d)[KMB]|(?<=[\d)] )to(?= \d))*")


@dataclass(frozen=True)
class Table:
    """A table of plain text; columns of figures are aligned to the right."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    folded: str = ""  # the line that opens a folded table; not folded if empty
    bold: Set[tuple[int, int]] = frozenset()  # cells, by row and column

    @classmethod
    def of(cls, columns: Mapping[str, Sequence[str]]) -> "Table":
        """A table of columns by heading."""
        return cls(list(columns), list(zip(*columns.values(), strict=True)))

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


def write_report(title: str, sections: Sequence[Section], to: Path = REPORTS) -> None:
    """Write report.html, report.md and figures into the folder."""
    figures = [block for part in sections for block in part.blocks if isinstance(block, Figure)]
    with atomic_folder(to / "figures") as folder:
        for figure in figures:
            write_text(folder / f"{figure.name}.svg", figure.svg)
    write_text(to / "report.md", as_markdown(title, sections, "figures"))
    write_text(to / "report.html", as_html(title, sections))


def as_html(title: str, sections: Sequence[Section]) -> str:
    """The whole report."""
    return _environment(autoescape=True).get_template("page.html.j2").render(title=title, sections=sections) + "\n"


def as_markdown(title: str, sections: Sequence[Section], figures: str) -> str:
    """The whole report; `figures` is the folder of the SVG files, relative to it."""
    return fill_markdown("page.md.j2", title=title, sections=sections, figures=figures)


def fill_markdown(template: str, folder: Path = TEMPLATES, **values: Any) -> str:
    """A template of `folder` with these values, escaped unless the template says `safe`."""
    return _environment(folder, finalize=_escaped).get_template(template).render(values)


def _environment(*folders: Path, **options: Any) -> Environment:
    loader = FileSystemLoader([*folders, TEMPLATES])
    return Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, **options)


def _escaped(value: Any) -> str:
    return value if isinstance(value, Markup) else str(value).translate(MARKDOWN)
