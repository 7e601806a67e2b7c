"""Figures as they were printed, and published.yaml: how it is read, and what is said where something in it is wrong."""

import re
from pathlib import Path
from typing import Any

import pytest

from retrace.core.errors import InputError
from retrace.core.files import write_json
from retrace.core.settings import build_file
from retrace.study.published import NumberFormat, PublishedCell, PublishedStudy, printed
from tests.toy import ROOT

ROWS: dict[str, Any] = {
    "name": "scores", "title": "Scores", "columns": ["accuracy", "F1"],
    "scale": {"accuracy": "fraction", "F1": "percent"},
    "rows": {"tuned": {"figures": ["score.sst2.full.accuracy", None], "published": ["0.5092", "67.5 ± 1.5"]}},
}  # fmt: skip
GRID: dict[str, Any] = {
    "name": "grid", "title": "Grid", "scale": "percent", "columns": {"ACL": "acl", "News": "news"},
    "rows": {"BERT": {"figures": "score.{column}.bert.accuracy", "published": ["77.41", None]}},
}  # fmt: skip


def _read(folder: Path, **changes: Any) -> PublishedStudy:
    write_json(folder / "published.yaml", {"title": "T", "source": "S", "tables": [ROWS, GRID]} | changes)
    return build_file(PublishedStudy, folder / "published.yaml")  # json is YAML too


def test_rows_have_their_own_figures_or_one_pattern(tmp_path: Path) -> None:
    own, pattern = _read(tmp_path).tables
    assert list(own.cells()) == [
        PublishedCell("tuned", "accuracy", "score.sst2.full.accuracy", printed("0.5092"), "fraction"),
        PublishedCell("tuned", "F1", None, printed("67.5 ± 1.5"), "percent"),
    ]
    assert list(pattern.cells()) == [
        PublishedCell("BERT", "ACL", "score.acl.bert.accuracy", printed("77.41"), "percent"),
        PublishedCell("BERT", "News", "score.news.bert.accuracy", None, "percent"),
    ]


def _row(figures: list[str], published: list[Any]) -> dict[str, Any]:
    return {"rows": {"tuned": {"figures": figures, "published": published}}}


def test_what_is_wrong_with_a_table_is_named(tmp_path: Path) -> None:
    for table, message in (
        (ROWS | {"name": "a b"}, "name: 'a b' is not allowed; expected letters, digits and dashes"),
        (ROWS | {"scale": "meters"}, "scale: 'meters' is not allowed; expected one of fraction, percentage, "),
        (ROWS | {"scale": {"F1": "percent"}}, "scale: ['F1'] is not allowed; expected all columns"),
        (ROWS | {"columns": ["F1", "F1"]}, "columns: ['F1', 'F1'] is not allowed; expected each once"),
        (ROWS | {"rows": {}}, "rows: [] is not allowed; expected at least one"),
        (ROWS | _row(["a"], ["1", "2"]), "figures of tuned: '1 figures' is not allowed; expected 2, one for each col"),
        (ROWS | _row(["a", "b"], ["1"]), "published of tuned: '1 figures' is not allowed; expected 2, one for"),
        (ROWS | _row(["a", "b"], ["1", "two"]), "tuned: F1: 'two' is not allowed; expected a figure as it was printed"),
        (ROWS | _row(["a", "b"], ["1", 0.5]), "tuned: F1: 0.5 is not allowed; expected text in quotes, which keeps"),
        (ROWS | _row(["a", "b"], ["50%", "1"]), "tuned: accuracy: '50%' is not allowed; % needs the scale percent "),
        (GRID | {"columns": ["ACL", "News"]}, "columns: ['ACL', 'News'] is not allowed; give each heading a value"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=f"^{re.escape(f'{tmp_path}/published.yaml: tables[0].{message}')}"):
            _read(tmp_path, tables=[table])


def _doubts(*places: str) -> dict[str, Any]:
    return {"doubts": [{"about": about, "says": "s", "finding": "f"} for about in places]}


def test_names_are_given_once_and_doubts_are_about_what_is_there(tmp_path: Path) -> None:
    path = f"{tmp_path}/published.yaml"
    with pytest.raises(
        InputError, match=rf"^{path}: tables: \['scores', 'scores'\] is not allowed; expected each once"
    ):
        _read(tmp_path, tables=[ROWS, ROWS])
    said = "'scores/tuned/recall' is not allowed; expected a table, TABLE/ROW or TABLE/ROW/COLUMN; tables: scores, grid"
    with pytest.raises(InputError, match=rf"^{path}: doubts\[0\].about: {said}$"):
        _read(tmp_path, **_doubts("scores/tuned/recall"))
    places = ["scores", "scores/tuned", "scores/tuned/F1", "grid/BERT/News"]
    assert [doubt.about for doubt in _read(tmp_path, **_doubts(*places)).doubts] == places


def test_a_text_keeps_its_digits_and_another_figure_has_as_many() -> None:
    for cell, value, digits, others in (
        ("0.5092", 0.5092, 4, {0.5: "0.5000"}), ("111", 111, 0, {47.28: "47"}),
        ("0.62", 0.62, 2, {0.0001: "0.0001", 1.2e-7: "1.2e-07"}),  # what is not 0 is not shown as 0
        ("109,482,240", 109_482_240, 0, {1_234_567: "1,234,567"}), ("110M", 110e6, -6, {109_482_240: "109,482,240"}),
        ("0.13263%", 0.13263, 5, {12.3: "12.30000%"}), ("2.11E-05", 2.11e-05, 7, {0.0123: "1.23E-02", 0: "0"}),
        ("1.3e4", 13_000, -3, {}), ("1.84e-2", 0.0184, 4, {}), ("1.23B", 1.23e9, -7, {}),
        ("1.84 × 10⁻²", 0.0184, 4, {0.018432: "1.84 × 10⁻²", 48_000: "4.80 × 10⁴"}),
        ("-7", -7, 0, {}), ("−0.3", -0.3, 1, {}), ("1 hour, 46 minutes and 38 seconds", 6398, 0, {}),
    ):  # fmt: skip
        found = printed(cell)
        assert found is not None
        assert (found.text, found.value, found.digits, found.std, found.end) == (cell, value, digits, None, None)
        assert {other: found.form.text(other) for other in others} == others


def test_a_text_has_a_spread_or_two_ends() -> None:
    for cell, *expected in (
        ("77.41 ± 2.81", 77.41, 2.81, None, 2),
        ("77.40±2.81", 77.4, 2.81, None, 2),
        (".05 ± .01", 0.05, 0.01, None, 2),  # without a zero, as APA style has it
        ("0.80-0.85", 0.8, None, 0.85, 2),
        ("124 to 99", 124, None, 99, 0),
        ("12.5% – 13.5%", 12.5, None, 13.5, 1),
        ("−0.5–−0.3", -0.5, None, -0.3, 1),
    ):
        found = printed(cell)
        assert found is not None
        assert [found.text, found.value, found.std, found.end, found.digits] == [cell, *expected]


@pytest.mark.parametrize("cell", ["50%-60%", "50-60%", "1.2 ± 0.1%", "1.2% ± 0.1%"])
def test_a_percent_sign_behind_either_number_is_the_unit(cell: str) -> None:
    found = printed(cell)
    assert found is not None
    assert found.form.unit == "%"


def test_what_is_no_figure_is_named() -> None:
    for said, texts in {
        "a figure as it was printed, such as 0.50 or 77":
            ["", "about 7", "7 %", "1,23", "nan", "7 ± ", "± 2", "1-2-3", "1.", ".", "an hour"],
        "both ends of a range with as many digits": ["80 to 82.5", "0.8-0.85"],
        "a figure of less than 1e308": ["1e309"],
    }.items():  # fmt: skip
        for text in texts:
            with pytest.raises(ValueError, match=f"^{re.escape(f'{text!r} is not allowed; expected {said}')}"):
                printed(text)


def test_spread_and_interval_have_as_many_digits_and_a_true_minus_sign_but_0_has_none() -> None:
    assert NumberFormat(1).text(80, 1.25, {"low": 78.25, "high": 82}) == "80.0 ± 1.2 (78.2 – 82.0)"
    assert NumberFormat(1).text(-1234.5, None, {"low": -0.04, "high": -0.0}) == "−1,234.5 (0.0 – 0.0)"
    assert NumberFormat(1).text(-1.2e-7) == "−1.2e-07"
    # All of it with as many digits as the figure needs, else the interval would not contain it.
    assert NumberFormat(2).text(0.001, 0.0001, {"low": 0.0005, "high": -0.0015}) == "0.001 ± 0.0001 (0.0005 – −0.0015)"
    assert NumberFormat(2, " × 10").text(-0.0184) == "−1.84 × 10⁻²"


# Every figure in the studies' published.yaml is found as text in the report that it is of.
REPORTS = Path(ROOT).parent / "shared" / "seeds"
NUMBERS = {"bert-wikitext2": "000", "llama-frozen": "001", "bert-mlm-nsp": "002", "roberta-small": "003",
           "plm-peft": "004"}  # fmt: skip
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@pytest.mark.skipif(not REPORTS.is_dir(), reason="the reports are not beside this checkout")
@pytest.mark.parametrize("study", NUMBERS)
def test_every_published_figure_stands_in_the_report(study: str) -> None:
    (path,) = REPORTS.glob(f"{NUMBERS[study]}_*.txt")
    # What LaTeX makes of ± and of powers of ten.
    report = re.sub(r"\^\{\\pm ?([\d.]+)\}", r" ± \1", path.read_text(encoding="utf-8"))
    report = re.sub(r" \\times 10\^\{?(-?\d+)\}?", lambda found: " × 10" + found[1].translate(RAISED), report)

    def stands(text: str) -> bool:
        forms = {text, f"{int(text):,}" if text.isdecimal() else text}
        return any(re.search(rf"(?<![\d.,]){re.escape(form)}(?![\d]|[.,]\d)", report) for form in forms)

    published = build_file(PublishedStudy, ROOT / "studies" / study / "published.yaml")
    figures = [cell.published.text for table in published.tables for cell in table.cells() if cell.published]
    figures += [str(count) for section in published.sections for count in section.get("published", {}).values()]
    assert len(figures) > 5
    assert [text for text in figures if not stands(text)] == []


def test_a_whole_number_is_rounded_unless_it_is_all_or_none_of_a_share() -> None:
    """A published accuracy of 1 is no rounded 0.6, and 1.0, as Python prints it, no rounded 0.96."""
    texts = ("0", "1", "-1", "2", "12", "1.0", "0.5", "1.00")
    exact, percents, counts = [4, 4, 4, 0, 0, 1, 1, 2], [2, 0, 0, 0, 0, 1, 1, 2], [0, 0, 0, 0, 0, 1, 1, 2]
    expected = {
        "fraction": [4, 4, 4, 0, 0, 4, 1, 2], "correlation": exact, "score": exact,
        "percent": percents, "percentage": percents,
        "count": counts, "perplexity": counts,
    }  # fmt: skip
    for scale, digits in expected.items():
        assert [PublishedCell("r", "c", None, printed(text), scale).digits for text in texts] == digits, scale
