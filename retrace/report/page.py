"""The page as one HTML file that fetches nothing, as Markdown next to its figures, and the figures as files.

All text is escaped, except drawings, which svg.py escapes itself. The page's security policy names its one style and
one script by their hashes and allows nothing else.
"""

import base64
import hashlib
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from retrace.core.files import atomic_folder, write_text
from retrace.report.blocks import Block, Fold, Form, Head, Panels, Section
from retrace.report.svg import LONGEST, STYLE, colour, mark, shortened, tag

REPORTS = Path("reports")
TEMPLATES = Path(__file__).parent
MARGINS: dict[Form, tuple[int, int, int, int]] = {  # px: top, right, bottom, left of a plot; those of page.css
    "small": (4, 6, 20, 30), "list": (4, 8, 20, 46), "wide": (12, 12, 24, 44), "rank": (0, 70, 22, 128),
}  # fmt: skip
WIDTHS: dict[Form, int] = {"small": 164, "list": 164, "wide": 760, "rank": 430}  # px of a panel, margins included
FILE_WIDTH, GAP, CAPTION = 900, 20, 24  # px in a file: all panels at most, the gap between two, the caption of a panel
EDGE = 16  # px of a file, left of the panels, for labels that are wider than a plot's margin
EMPTY = Head()
# Control characters would act on a terminal, and marks of direction on the text beside them.
HIDDEN = dict.fromkeys(
    (*range(32), *range(127, 160), 0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)), "\ufffd"
)
# Characters that XML forbids even escaped: a browser shows no figure with one of them.
NO_XML = dict.fromkeys((*range(9), 0x0B, 0x0C, *range(0x0E, 32), 0xFFFE, 0xFFFF), "\ufffd")
DOLLAR = "<span>$</span>"  # as GitHub asks for outside of formulas
MARKDOWN = HIDDEN | str.maketrans(
    {character: f"\\{character}" for character in "\\`*_[]<>|&~"} | {"\n": " ", "\r": " ", "\t": " ", "$": DOLLAR}
)


def write_report(title: str, sections: Sequence[Section], to: Path = REPORTS, head: Head = EMPTY) -> None:
    """Write report.html, report.md and figures into the folder."""
    with atomic_folder(to / "figures") as folder:
        for shown in panels_of([block for part in sections for block in part.blocks]):
            write_text(folder / f"{shown.name}.svg", picture(shown) + "\n")
    write_text(to / "report.md", as_markdown(title, sections, head))
    write_text(to / "report.html", as_html(title, sections, head))


def panels_of(blocks: Sequence[Block]) -> Iterator[Panels]:
    """All figures, including those inside folds."""
    for block in blocks:
        if isinstance(block, Panels):
            yield block
        elif isinstance(block, Fold):
            yield from panels_of(block.blocks)


def picture(shown: Panels) -> str:
    """The SVG file of the plots side by side, each under its shape, name and value."""
    top, right, bottom, left = MARGINS[shown.form]
    width, height = WIDTHS[shown.form], CAPTION + top + max(panel.height for panel in shown.panels) + bottom
    columns = max(1, min(len(shown.panels), (FILE_WIDTH + GAP) // (width + GAP)))
    drawn: list[Markup | str] = [tag("style", Markup(STYLE)), tag("text", shown.title, x=0, y=14, class_="ink")]
    for i, panel in enumerate(shown.panels):
        x, y = i % columns * (width + GAP), 28 + i // columns * (height + GAP)
        place = panel.place if panel.name else None
        shape = tag("g", mark(place), transform=f"translate({x} {y + 2})") if place is not None else ""
        name = shortened(panel.name, LONGEST * WIDTHS[shown.form] // WIDTHS["small"])
        head = tag("text", name, x=x + (16 if place is not None else 0), y=y + 12, class_="ink")
        beside = tag("text", panel.value, x=x + width - right, y=y + 12, text_anchor="end", class_="ink")
        size = {"width": width - left - right, "height": panel.height}
        box = tag("svg", *panel.drawn, x=x + left, y=y + CAPTION + top, **size)
        drawn += [shape, head, beside, tag("g", box, class_=None if panel.place is None else colour(panel.place))]
    width, height = columns * (width + GAP) - GAP, 28 + math.ceil(len(shown.panels) / columns) * (height + GAP)
    frame = {"role": "img", "aria_label": shown.title, "width": EDGE + width, "height": height}
    box = f"{-EDGE} 0 {EDGE + width} {height}"
    drawing = tag("svg", *drawn, xmlns="http://www.w3.org/2000/svg", **frame, viewBox=box)
    return drawing.translate(NO_XML)


def as_html(title: str, sections: Sequence[Section], head: Head = EMPTY) -> str:
    """The whole page."""
    style, script = STYLE + packaged("page.css"), packaged("page.js")
    return make_environment(autoescape=True).get_template("page.html.j2").render(
        title=title, sections=anchored(sections), head=head, style=Markup(style), script=Markup(script),
        policy=f"default-src 'none'; style-src {source_hash(style)}; script-src {source_hash(script)}; img-src data:; "
               "base-uri 'none'; form-action 'none'",
    ) + "\n"  # fmt: skip


def anchored(sections: Sequence[Section]) -> dict[str, Section]:
    """The sections, each by an anchor of its own: a study's tables and its run both have a section Pretraining."""
    found: dict[str, Section] = {}
    own = re.findall(r'\bid="([\w-]+)"', packaged("page.html.j2") + packaged("blocks.html.j2"))
    for section in sections:
        anchor = section.id
        while anchor in (*own, *found):
            anchor += "-2"
        found[anchor] = section
    return found


def as_markdown(title: str, sections: Sequence[Section], head: Head = EMPTY) -> str:
    """The whole page; its figures are the files of the folder `figures` beside it."""
    return fill_markdown("page.md.j2", title=title, sections=sections, head=head)


def fill_markdown(template: str, folder: Path = TEMPLATES, **values: Any) -> str:
    """A template of the folder, its values escaped unless the template says `safe`."""
    return make_environment(folder, finalize=_escaped).get_template(template).render(values)


def packaged(name: str, folder: Path = TEMPLATES) -> str:
    """A style or script to be put into a page."""
    return (folder / name).read_text(encoding="utf-8")


def source_hash(inline: str) -> str:
    """An inline style or script as a content security policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()}'"


def make_environment(*folders: Path, **options: Any) -> Environment:
    """An environment for templates of these folders and of this one, which can call `mark` and `colour` of svg.py."""
    loader = FileSystemLoader([*folders, TEMPLATES])
    found = Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, **options)
    found.globals.update(mark=mark, colour=colour)
    return found


def _escaped(value: Any) -> str:
    return value if isinstance(value, Markup) else str(value).translate(MARKDOWN)
