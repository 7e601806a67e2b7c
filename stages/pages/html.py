"""Sections as one HTML file that needs nothing else: no script, no font, no picture from elsewhere.

All text is escaped; only the figures, which the project draws itself, are put in as they are.
"""

from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from stages.pages.content import Section

TEMPLATE = "report.html.j2"


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
