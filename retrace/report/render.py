"""Sections as one HTML file that needs nothing else: no script, no font, no picture from elsewhere.

All text is escaped; only the figures, which the project draws itself, are put in as they are.

Sections as Markdown; figures are linked from the folder beside it.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from retrace.report.blocks import Code, Figure, Section, Table

TEMPLATE = "page.html.j2"


def as_html(title: str, sections: Sequence[Section]) -> str:
    """The whole report."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(TEMPLATE).render(title=title, sections=sections) + "\n"


def as_markdown(title: str, sections: Sequence[Section], figures: str) -> str:
    """The whole report; `figures` is the folder of the SVG files, relative to it."""
    parts = [f"# {_escaped(title)}"]
    for section in sections:
        parts.append(f"## {_escaped(section.title)}")
        parts += [_block(block, figures) for block in section.blocks]
    return "\n\n".join(parts) + "\n"


def _block(block: str | Table | Figure | Code, figures: str) -> str:
    if isinstance(block, Figure):
        return f"![{block.caption}]({figures}/{block.name}.svg)\n\n*{block.caption}*"
    if isinstance(block, Code):
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", block.text)), default=0))
        return f"{fence}{block.language}\n{block.text}\n{fence}"
    return _table(block) if isinstance(block, Table) else _escaped(block)


def _table(table: Table) -> str:
    rule = ["---:" if table.is_numeric(column) else "---" for column in range(len(table.header))]
    rows = [
        [
            f"**{_escaped(cell)}**" if (row, column) in table.bold else _escaped(cell)
            for column, cell in enumerate(cells)
        ]
        for row, cells in enumerate(table.rows)
    ]
    lines = ["| " + " | ".join(cells) + " |" for cells in ([_escaped(cell) for cell in table.header], rule, *rows)]
    return "\n".join([_escaped(table.folded), "", *lines] if table.folded else lines)


def _escaped(text: str) -> str:
    for character in "\\`*_[]<>|":
        text = text.replace(character, "\\" + character)
    return text.replace("\n", " ")
