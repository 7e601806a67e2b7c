from stages.pages.content import Section, Table
from stages.pages.html import as_html
from stages.pages.markdown import as_markdown
from stages.pages.study_page import (
    ComparedTable,
    DoubtFacts,
    about_section,
    choices_section,
    compared_sections,
    doubts_section,
    published_text,
    reproduced_text,
)  # fmt: skip

EVIL = "<script>*b*"
CELL = {
    "verdict": "beyond", "scale": "percent", "digits": 2, "published": 77.41, "published_sd": 2.81, "reproduced": 80.0,
    "sd": 1.5, "interval": {"low": 78.25, "high": 82.0},
}  # fmt: skip
NOTHING = {"verdict": "not run", "scale": "percent", "digits": 2, "published": None, "reproduced": None}
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


def test_only_a_figure_beyond_the_interval_is_marked() -> None:
    rows = {"r": {"c": {**CELL, "verdict": "within"}}}
    table = ComparedTable("t", "s", rows, {"published": set(), "reproduced": set()})
    (section,) = compared_sections([table])
    assert isinstance(section.blocks[-1], Table)
    assert section.blocks[-1].rows == [["r", "77.41 ± 2.81", "80.00 ± 1.50 (78.25 – 82.00)"]]


def test_tables_of_a_section_stand_together() -> None:
    sections = compared_sections([_table("one", "A"), _table("two", "B"), _table("three", "A")])
    assert [section.title for section in sections] == ["A", "B"]
    assert [block for block in sections[0].blocks if isinstance(block, str)][1:] == ["one:", "three:"]


def test_what_is_not_0_is_not_shown_as_0() -> None:
    tiny = {"verdict": "no interval", "scale": "fraction", "digits": 4, "published": 6.8036e-233, "reproduced": 0.0}
    assert (published_text(tiny), reproduced_text(tiny)) == ("6.8e-233", "0.0000")
    assert Table(("", "c"), [("r", published_text(tiny))]).is_numeric(1)


def test_the_profile_says_whether_figures_are_comparable() -> None:
    small, whole = (as_markdown("T", [about_section("T", "S", name)], "f") for name in ("small", "published"))
    assert "of the profile small, not as published" in small
    assert "NOT comparable" in small
    assert "NOT comparable" not in whole


def test_doubts_have_their_evidence() -> None:
    facts = DoubtFacts("questions", "ROUGE 754", "A count.", {"ROUGE-1": (0.5, {"low": 0.25, "high": 0.75}, 4),
                                                             "not run": (None, None, 0)})  # fmt: skip
    section = doubts_section([facts], ["off scale"])
    assert section is not None
    page = as_markdown("T", [section], "figures")
    assert "questions: the report says ROUGE 754. A count." in page
    assert "| ROUGE-1 | 0.5000 (0.2500 – 0.7500) |" in page
    assert "| not run | – |" in page
    assert "Retrace notices: off scale." in page
    assert doubts_section([], []) is None


def test_choices_are_paragraphs() -> None:
    assert "\n\nBatch: 16.\n\n" in as_markdown("T", choices_section(["Batch: 16.", "Rate: 1."]), "figures")
    assert choices_section([]) == []
