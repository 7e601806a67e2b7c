import base64
import hashlib
import html
import math
import re
from xml.etree import ElementTree

import pytest

from retrace.report.blocks import Code, Fold, Head, Panel, Panels, Section, Table, TableCell, figure_text, signed
from retrace.report.names import count_text, p_text
from retrace.report.page import as_html, as_markdown, picture
from retrace.report.svg import joined, tag, ticks

EVIL = "<script>alert('x')</script> | & *b*"


def test_text_is_escaped() -> None:
    sections = [Section(EVIL, [EVIL, Table((EVIL, "n"), [(EVIL, TableCell(EVIL, small=EVIL))], label=EVIL)])]
    page = as_html(EVIL, sections, Head([f"**bold** {EVIL}"], {EVIL: EVIL}))
    assert page.count("<script") == 1  # the page's own
    assert page.count("&lt;script&gt;") == 14
    assert "<p><strong>bold</strong> &lt;script&gt;" in page
    markdown = as_markdown("T", sections, Head([f"**bold** {EVIL}"]))
    assert r"**bold** \<script\>" in markdown
    assert markdown.count(r"\<script\>alert('x')\</script\> \| \& \*b\*") == 7
    assert "<script" not in markdown.replace("\\<", "")
    folded = as_markdown("T", [Section("S", [Fold(EVIL, EVIL, ["text"])])])  # whose title is HTML
    assert folded.count("&lt;script&gt;") == 2


def test_text_in_a_drawing_is_escaped() -> None:
    drawn = tag("text", EVIL, tag("g"), data_t=f'"{EVIL}')
    escaped = "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; | &amp; *b*"
    assert drawn == f'<text data-t="&#34;{escaped}">{escaped}<g/></text>'
    assert joined([EVIL, drawn]) == f"{escaped}{drawn}"


def test_a_browser_runs_the_pages_own_style_and_script_and_nothing_else() -> None:
    page = as_html(EVIL, [])
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    own = {}
    for name in ("style", "script"):
        (text,) = re.findall(rf"<{name}>(.*?)</{name}>", page, re.DOTALL)
        own[name] = f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
    assert html.unescape(policy).split("; ") == [
        "default-src 'none'", f"style-src {own['style']}", f"script-src {own['script']}", "img-src data:",
        "base-uri 'none'", "form-action 'none'",
    ]  # fmt: skip


def test_every_section_has_an_anchor_of_its_own() -> None:
    """A study's tables and its run both have a section Pretraining; a task may be called like a part of the page."""
    titles = ("Pretraining", "main", "b-page", "predictions-data", "Pretraining", "Pretraining")
    page = as_html("T", [Section(title, []) for title in titles])
    anchors = ["pretraining", "main-2", "b-page-2", "predictions-data-2", "pretraining-2", "pretraining-2-2"]
    assert re.findall(r'<a href="#([\w-]+)">', page) == anchors
    assert re.findall(r' id="([\w-]+)"', page) == ["main", "verdict", *anchors]


def test_dollar_signs_in_markdown_begin_no_formula() -> None:
    sections = [Section("S", ["of $a$", Table(("class",), [("$b$",)]), Code("echo $A $B", "sh")])]
    page = as_markdown("T", sections, Head(["**$c$**"]))
    for sign in "abc":
        assert f"<span>$</span>{sign}<span>$</span>" in page
    assert page.replace("<span>$</span>", "").count("$") == 2, "those of the code, which stays as it is"


def test_no_mark_of_direction_is_in_markdown() -> None:
    """All twelve that Unicode has, such as the Arabic letter mark."""
    marks = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    assert "\ufffd" * 12 in as_markdown("T", [Section("S", [marks])])


def test_code_stays_as_it_is() -> None:
    sections = [Section("S", [Code("a = '*'\nb = [a]"), Code("└─ x", "text")])]
    for code in ("\n```python\na = '*'\nb = [a]\n```\n", "\n```text\n└─ x\n```\n"):
        assert code in as_markdown("T", sections)
    assert "a = &#39;*&#39;\nb = [a]</pre>" in as_html("T", sections)


def test_ticks_are_round_and_hold_all_values() -> None:
    for low, high, found in (
        (0, 100, [0, 25, 50, 75, 100]), (46.2, 95, [40, 60, 80, 100]), (0.1, 0.1, [0.1, 0.125, 0.15, 0.175, 0.2]),
        (-3, 2, [-4, -2, 0, 2]), (66.66666666666667, 66.66666666666669, [60, 80, 100, 120, 140]),
    ):  # fmt: skip
        assert ticks(low, high) == pytest.approx(found)


def test_a_figure_is_xml_whatever_characters_the_data_has() -> None:
    name = "a\x08\x1b\ufffe <&> \n"
    drawn = ElementTree.fromstring(picture(Panels("x", "", "", [Panel(name, [tag("rect", data_t=name)], "", place=0)])))
    shown = "a\ufffd\ufffd\ufffd <&> "
    assert f"{shown}\n" in drawn.itertext()
    assert [box.get("data-t", "").rstrip() for box in drawn.findall(".//{*}rect")] == [shown.rstrip()]


def test_a_file_has_room_for_labels_and_no_shape_of_a_panel_without_a_name() -> None:
    """A class's name of four capitals of 10 px ends 6 px left of a plot, which begins at 30 px."""
    drawn = picture(Panels("x", "", "", [Panel("", [], "", place=0)]))
    (left,) = re.findall(r'viewBox="(-?\d+) ', drawn)
    assert int(left) <= 30 - 6 - 4 * 10
    assert "<circle" not in drawn
    assert "<circle" in picture(Panels("x", "", "", [Panel("Full", [], "", place=0)]))


def test_a_title_is_cut_in_a_file_only_where_the_panel_has_no_room() -> None:
    """The ranking is 430 px wide, a method's plot 164 px, some of which its value takes."""
    panels = [Panel("Reviews, test set", [], "")]
    assert ">Reviews, test set</text>" in picture(Panels("x", "", "", panels, "rank"))
    assert ">Reviews…st set</text>" in picture(Panels("x", "", "", panels))


def test_columns_of_figures_are_aligned() -> None:
    table = Table(
        ("name", "n", "i"), [("a", "+1,234.50", "−0.9 ± 0.1 (0.7 – 1.1)"), ("b", "–", TableCell("", small="1"))]
    )
    assert [table.is_numeric(column) for column in (0, 1, 2)] == [False, True, True]
    assert "| --- | ---: | ---: |" in as_markdown("T", [Section("S", [table])])
    for interval in ("−3.4 to −1.2", "−0.4 to +1.2", "+0.3 to +2.1"):
        assert Table(("interval",), [(interval,)]).is_numeric(0)
    assert not Table(("on",), [("2026-11-22",)]).is_numeric(0)
    assert not Table(("version",), [("2.10.0",), ("2.3.5",)]).is_numeric(0)


def test_figures_have_fixed_digits() -> None:
    found = [figure_text(value, digits) for value, digits in ((1234.5, 2), (0.5, 4), (None, 2), (7, 0), (-1.25, 1))]
    assert found == ["1,234.50", "0.5000", "–", "7", "−1.2"]
    assert [figure_text(float(of)) for of in ("nan", "inf")] == ["–", "–"]
    assert [figure_text(of) for of in (999_999_999_999_999.0, 1e15, -5.1847e21)] == [
        "999,999,999,999,999.00", "1.00e+15", "−5.18e+21"
    ]  # fmt: skip
    assert Table(("perplexity",), [("1.00e+15",), ("−5.18e+21",)]).is_numeric(0)
    assert [signed(of) for of in (0.26, -3.0, 0.04, -1e-17, math.inf)] == ["+0.3", "−3.0", "0.0", "0.0", "–"]
    assert [count_text(of) for of in (999_994_999, 999_995_000)] == ["999.99 M", "1.00 B"]
    shown = ["<0.0001", "0.0001", "0.0499", "<0.05", "0.0500", "–"]
    assert [p_text(of) for of in (0.00009, 0.0001, 0.04994, 0.04996, 0.05, None)] == shown


def test_a_difference_is_rounded_as_the_figure_that_it_is() -> None:
    """49 less 47.75 and 100 times 0.0125: one quarter, but for floating-point noise."""
    assert signed(100 * (0.49 - 0.4775)) == signed(100 * 0.0125) == "+1.2"
