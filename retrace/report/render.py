"""Sections as HTML and as Markdown.

The HTML is one file that needs nothing else: no script, no font, no picture from elsewhere. Markdown links the figures
from a folder beside it. All text is escaped; only figures, which the project draws itself, are put in as they are.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from retrace.report.blocks import Section

TEMPLATES = Path(__file__).parent
MARKDOWN = str.maketrans({character: f"\\{character}" for character in "\\`*_[]<>|"} | {"\n": " "})


def as_html(title: str, sections: Sequence[Section]) -> str:
    """The whole report."""
    return _environment(autoescape=True).get_template("page.html.j2").render(title=title, sections=sections) + "\n"


def as_markdown(title: str, sections: Sequence[Section], figures: str) -> str:
    """The whole report; `figures` is the folder of the SVG files, relative to it."""
    return fill_markdown("page.md.j2", title=title, sections=sections, figures=figures)


def fill_markdown(template: str, folder: Path = TEMPLATES, **values: Any) -> str:
    """A template of `folder` with these values, escaped unless the template says `safe`."""
    environment = _environment(folder, finalize=_escaped)
    return environment.get_template(template).render(values)


def _environment(*folders: Path, **options: Any) -> Environment:
    loader = FileSystemLoader([*folders, TEMPLATES])
    return Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, **options)


def _escaped(value: Any) -> str:
    return value if isinstance(value, Markup) else str(value).translate(MARKDOWN)
