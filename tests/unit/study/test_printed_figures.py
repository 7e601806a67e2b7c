"""Every figure in the studies' published.yaml is found as text in the report that it is of."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from retrace.report.blocks import Table
from retrace.report.page import as_html
from retrace.study.page import compared_sections
from retrace.study.published import ComparedCell, ComparedTable, read_published
from tests.study import cell_of
from tests.toy import ROOT

REPORTS = Path(ROOT).parent / "shared" / "seeds"
NUMBERS = {"bert-wikitext2": "000", "llama-frozen": "001", "bert-mlm-nsp": "002", "roberta-small": "003",
           "plm-peft": "004"}  # fmt: skip
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _plain(text: str) -> str:
    """A report's text with what LaTeX makes of ± and of powers of ten."""
    text = re.sub(r"\^\{\\pm ?([\d.]+)\}", r" ± \1", text)
    return re.sub(r" \\times 10\^\{?(-?\d+)\}?", lambda found: " × 10" + found[1].translate(RAISED), text)


def _figures(study: str) -> Iterator[str]:
    published = read_published(ROOT / "studies" / study / "published.yaml")
    for table in published.tables:
        yield from (cell.published.text for cell in table.cells() if cell.published is not None)
    for section in published.sections:
        yield from map(str, section.get("published", {}).values())


@pytest.mark.skipif(not REPORTS.is_dir(), reason="the reports are not beside this checkout")
@pytest.mark.parametrize("study", NUMBERS)
def test_every_published_figure_stands_in_the_report(study: str) -> None:
    (path,) = REPORTS.glob(f"{NUMBERS[study]}_*.txt")
    report = _plain(path.read_text(encoding="utf-8"))
    figures = list(_figures(study))
    absent = [
        text
        for text in figures
        if not any(
            re.search(rf"(?<![\d.,]){re.escape(form)}(?![\d]|[.,]\d)", report)
            for form in (text, f"{int(text):,}" if text.isdecimal() else text)
        )
    ]
    assert len(figures) > 5
    assert absent == []


@pytest.mark.parametrize("study", [path.parent.name for path in sorted(ROOT.glob("studies/*/published.yaml"))])
def test_the_page_shows_every_figure_as_it_was_printed(study: str) -> None:
    tables = read_published(ROOT / "studies" / study / "published.yaml").tables
    for table in tables:
        rows: dict[str, dict[str, ComparedCell]] = {}
        for cell in table.cells():
            printed = cell.published.text if cell.published else None
            rows.setdefault(cell.row, {})[cell.column] = cell_of("not run", cell.scale, printed)
        (section,) = compared_sections([ComparedTable(title=table.title, rows=rows)])
        shown = section.blocks[-1]
        assert isinstance(shown, Table)
        texts = [cell.published.text if cell.published else "–" for cell in table.cells()]
        assert [str(cell) for row in shown.rows for cell in row[1::2]] == texts
        assert all(f">{text}<" in as_html("T", [section]) for text in texts)
