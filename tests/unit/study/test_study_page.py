import pytest

from retrace.report.blocks import Section, Table
from retrace.report.render import as_html, as_markdown
from retrace.study.page import (
    ComparedTable,
    DoubtFacts,
    about_section,
    compared_sections,
    doubts_section,
    set_up_sections,
)  # fmt: skip

EVIL = "<script>*b*"
CELL = {"verdict": "beyond", "printed": "77.41 ± 2.81", "shown": "80.00 ± 1.50 (78.25 – 82.00)"}
NOTHING = {"verdict": "not run", "printed": None, "shown": None}
BEST = {"published": {("BERT", "ACL")}, "reproduced": {("BERT", "ACL")}}


def _table(title: str = "Accuracy", section: str = "Results") -> ComparedTable:
    return ComparedTable(title, section, {"BERT": {"ACL": CELL, EVIL: NOTHING}}, BEST)


def test_figures_stand_side_by_side_with_the_best_in_bold() -> None:
    page = as_markdown("T", compared_sections([_table()]), "figures")
    assert (
        "|  | ACL, published | ACL, Retrace | \\<script\\>\\*b\\*, published | \\<script\\>\\*b\\*, Retrace |" in page
    )
    assert "| --- | ---: | ---: | ---: | ---: |" in page
    assert "| BERT | **77.41 ± 2.81** | **80.00 ± 1.50 (78.25 – 82.00) ≠** | – | – |" in page


def test_bold_and_escaped_in_html() -> None:
    page = as_html(EVIL, compared_sections([_table()]))
    assert '<td class="n"><b>77.41 ± 2.81</b></td><td class="n"><b>80.00 ± 1.50 (78.25 – 82.00) ≠</b></td>' in page
    assert "<script" not in page
    assert page.count("<b>") == 2


def test_titles_are_escaped_in_markdown() -> None:
    page = as_markdown(EVIL, [Section(EVIL, [])], "figures")
    assert page == "# \\<script\\>\\*b\\*\n\n## \\<script\\>\\*b\\*\n"


@pytest.mark.parametrize(("verdict", "mark"), [("within", ""), ("beyond", " ≠"), ("outside, one seed", " (≠)")])
def test_only_a_figure_outside_is_marked(verdict: str, mark: str) -> None:
    rows = {"r": {"c": {**CELL, "verdict": verdict}}}
    table = ComparedTable("t", "s", rows, {"published": set(), "reproduced": set()})
    (section,) = compared_sections([table])
    assert isinstance(section.blocks[-1], Table)
    assert section.blocks[-1].rows == [["r", "77.41 ± 2.81", f"80.00 ± 1.50 (78.25 – 82.00){mark}"]]
    assert section.blocks[-1].is_numeric(2)


def test_tables_of_a_section_stand_together() -> None:
    sections = compared_sections([_table("one", "A"), _table("two", "B"), _table("three", "A")])
    assert [section.title for section in sections] == ["A", "B"]
    assert [block for block in sections[0].blocks if isinstance(block, str)][1:] == ["one:", "three:"]


@pytest.mark.parametrize(
    "text",
    ["6.803596311961173e-233", "2.11E-05", "1.84 × 10⁻²", "110M", "0.13263%", "0.80-0.85", "124 to 99", "–",
     "0.8 (0.7 – 0.9) to 0.75", "1.3e4"],
)  # fmt: skip
def test_columns_of_printed_figures_are_numeric(text: str) -> None:
    assert Table(("", "c"), [("r", text)]).is_numeric(1)
    assert not Table(("", "c"), [("r", "1 hour")]).is_numeric(1)


def test_the_profile_says_whether_figures_are_comparable() -> None:
    small, whole = (
        as_markdown("T", [about_section("T", "A study.", "S", name)], "f") for name in ("small", "published")
    )
    assert "of the profile small, not as published" in small
    assert "NOT comparable" in small
    assert "NOT comparable" not in whole


def test_doubts_have_their_evidence() -> None:
    facts = DoubtFacts("questions", "ROUGE 754", "A count.", {"ROUGE-1": "0.5000 (0.2500 – 0.7500)",
                                                             "not run": ""})  # fmt: skip
    section = doubts_section([facts], ["off scale"])
    assert section is not None
    page = as_markdown("T", [section], "figures")
    assert "questions: the report says ROUGE 754. A count." in page
    assert "| ROUGE-1 | 0.5000 (0.2500 – 0.7500) |" in page
    assert "| not run | – |" in page
    assert "Retrace notices: off scale." in page
    assert doubts_section([], []) is None


def test_differences_and_choices_are_paragraphs() -> None:
    sections = set_up_sections(["The last epoch."], ["Batch: 16.", "Rate: 1."])
    page = as_markdown("T", sections, "figures")
    assert "## Where this run differs from the report's\n\nThe last epoch.\n\n## What the report leaves open\n" in page
    assert "\n\nBatch: 16.\n\n" in page
    assert set_up_sections([], []) == []
