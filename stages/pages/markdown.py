"""Sections as Markdown; figures are linked from the folder beside it."""

import re
from collections.abc import Sequence

from stages.pages.content import Code, Figure, Section, Table


def as_markdown(title: str, sections: Sequence[Section], figures: str) -> str:
    """The whole report; `figures` is the folder of the SVG files, relative to it."""
    parts = [f"# {title}"]
    for section in sections:
        parts.append(f"## {section.title}")
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
    rows = [table.header, rule, *table.rows]
    lines = ["| " + " | ".join(_escaped(cell) if row is not rule else cell for cell in row) + " |" for row in rows]
    return "\n".join([_escaped(table.folded), "", *lines] if table.folded else lines)


def _escaped(text: str) -> str:
    for character in "\\`*_[]<>|":
        text = text.replace(character, "\\" + character)
    return text.replace("\n", " ")
