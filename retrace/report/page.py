"""The page as one HTML file that fetches nothing, as Markdown beside its figures, and the figures as files.

All text is escaped; only drawings, which svg.py makes and escapes itself, are put in as they are. The page's security
policy names its one style and one script by their hashes and allows nothing else.
"""

import base64
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from retrace.core.files import atomic_folder, write_text
from retrace.report.blocks import Block, Fold, Head, Panels, Section
from retrace.report.svg import SHAPES, STYLE, mark, picture

REPORTS = Path("reports")
WRITTEN = f"the report is in {REPORTS / 'report.html'} and {REPORTS / 'report.md'}"
TEMPLATES = Path(__file__).parent
MARKDOWN = str.maketrans({character: f"\\{character}" for character in "\\`*_[]<>|"} | {"\n": " ", "\r": " "})


def write_report(title: str, sections: Sequence[Section], to: Path = REPORTS, head: Head | None = None) -> None:
    """Write report.html, report.md and figures into the folder."""
    head = head or Head()
    with atomic_folder(to / "figures") as folder:
        for shown in panels_of([block for part in sections for block in part.blocks]):
            drawn = [(panel.name, panel.place, panel.value, panel.plot) for panel in shown.panels]
            write_text(folder / f"{shown.name}.svg", picture(shown.title, drawn, shown.legend) + "\n")
    write_text(to / "report.md", as_markdown(title, sections, "figures", head))
    write_text(to / "report.html", as_html(title, sections, head))


def panels_of(blocks: Sequence[Block]) -> Iterator[Panels]:
    """All figures, those that are folded away among them."""
    for block in blocks:
        if isinstance(block, Panels):
            yield block
        elif isinstance(block, Fold):
            yield from panels_of(block.blocks)


def as_html(title: str, sections: Sequence[Section], head: Head | None = None) -> str:
    """The whole page."""
    style, script = STYLE + _packaged("page.css"), _packaged("page.js")
    environment = make_environment(autoescape=True)
    return environment.get_template("page.html.j2").render(
        title=title, sections=sections, head=head or Head(), style=Markup(style), script=Markup(script),
        policy=f"default-src 'none'; style-src {source_hash(style)}; script-src {source_hash(script)}; img-src data:; "
               "base-uri 'none'; form-action 'none'",
    ) + "\n"  # fmt: skip


def as_markdown(title: str, sections: Sequence[Section], figures: str, head: Head | None = None) -> str:
    """The whole page; `figures` is the folder of the SVG files, relative to it."""
    return fill_markdown("page.md.j2", title=title, sections=sections, figures=figures, head=head or Head())


def fill_markdown(template: str, folder: Path = TEMPLATES, **values: Any) -> str:
    """A template of `folder` with these values, escaped unless the template says `safe`."""
    return make_environment(folder, finalize=_escaped).get_template(template).render(values)


def _packaged(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def source_hash(inline: str) -> str:
    """What a content security policy calls an inline style or script."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()}'"


def make_environment(*folders: Path, **options: Any) -> Environment:
    """Templates of these folders and of this one; of a page they may call `mark` for the shape of a method."""
    loader = FileSystemLoader([*folders, TEMPLATES])
    found = Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, **options)
    found.globals |= {"mark": mark, "shapes": len(SHAPES)}
    return found


def _escaped(value: Any) -> str:
    return value if isinstance(value, Markup) else str(value).translate(MARKDOWN)
