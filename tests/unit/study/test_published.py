"""Figures as they were printed, and published.yaml: how it is read, and what is said where something in it is wrong."""

import re
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from retrace.core.errors import InputError
from retrace.study.published import Cell, Form, PublishedStudy, printed, read_published
from tests.toy import ROOT

ROWS = {
    "name": "scores", "title": "Scores", "columns": ["accuracy", "F1"],
    "scale": {"accuracy": "fraction", "F1": "percent"},
    "rows": {"tuned": {"figures": ["score.sst2.full.accuracy", None], "published": ["0.5092", "67.5 ± 1.5"]}},
}  # fmt: skip
GRID = {
    "name": "grid", "title": "Grid", "scale": "percent", "columns": {"ACL": "acl", "News": "news"},
    "rows": {"BERT": {"figures": "score.{column}.bert.accuracy", "published": ["77.41", None]},
             "LoRA": {"figures": "score.{column}.lora.accuracy", "published": ["1", "2"]}},
}  # fmt: skip
STUDY = {"title": "T", "source": "S", "tables": [ROWS, GRID]}


def _read(folder: Path, study: Any) -> PublishedStudy:
    path = folder / "published.yaml"
    with path.open("w", encoding="utf-8") as file:
        YAML().dump(study, file)
    return read_published(path)


def test_rows_have_their_own_figures_or_one_pattern(tmp_path: Path) -> None:
    own, pattern = _read(tmp_path, STUDY).tables
    assert list(own.cells()) == [
        Cell("tuned", "accuracy", "score.sst2.full.accuracy", printed("0.5092"), "fraction"),
        Cell("tuned", "F1", None, printed("67.5 ± 1.5"), "percent"),
    ]
    assert [(cell.address, cell.published and cell.published.value) for cell in pattern.cells()] == [
        ("score.acl.bert.accuracy", 77.41), ("score.news.bert.accuracy", None),
        ("score.acl.lora.accuracy", 1.0), ("score.news.lora.accuracy", 2.0),
    ]  # fmt: skip


def test_scales_may_be_of_rows(tmp_path: Path) -> None:
    table = ROWS | {"scale": {"tuned": "count"}}
    study = _read(tmp_path, {**STUDY, "tables": [table]})
    assert [cell.scale for cell in study.tables[0].cells()] == ["count", "count"]
    with pytest.raises(InputError, match=r"best: 'column' is not allowed; expected none with a scale for each row"):
        _read(tmp_path, {**STUDY, "tables": [table | {"best": "column"}]})


@pytest.mark.parametrize(
    ("table", "key", "value", "message"),
    [
        (0, "name", "a b", "tables[0].name: 'a b' is not allowed; expected letters, digits and dashes"),
        (0, "scale", "meters", "tables[0].scale: 'meters' is not allowed; expected one of fraction, percentage, "),
        (0, "scale", {"accuracy": "fraction"}, "tables[0].scale: ['accuracy'] is not allowed; expected all columns, "),
        (0, "rows", {"tuned": {"figures": ["a"], "published": ["1", "2"]}},
         "tables[0].figures of tuned: '1 figures' is not allowed; expected 2, as there are columns"),
        (0, "columns", ["F1", "F1"], "tables[0].columns: ['F1', 'F1'] is not allowed; expected each heading once"),
        (0, "rows", {}, "tables[0].rows: [] is not allowed; expected at least one"),
        (0, "rows", {"tuned": {"figures": ["a", "b"], "published": [1, [2]]}},
         "tables[0].rows.tuned.published[1]: [2] is not allowed; expected a number or text or null"),
        (0, "rows", {"tuned": {"figures": ["a", "b"], "published": ["1", "two"]}},
         "tables[0].tuned: F1: 'two' is not allowed; expected a figure as it was printed, such as 0.50 or 77.41 ± "),
        (0, "rows", {"tuned": {"figures": ["a", "b"], "published": ["1", 0.5]}},
         "tables[0].tuned: F1: 0.5 is not allowed; expected text in quotes, which keeps the printed digits"),
        (0, "rows", {"tuned": {"figures": ["a", "b"], "published": ["50%", "1"]}},
         "tables[0].tuned: accuracy: '50%' is not allowed; % is of the scales percent and percentage"),
        (0, "rows", {"tuned": {"figures": ["a", "b to c"], "published": ["1", "1"]}},
         "tables[0].tuned: F1: b to c: two addresses are of a range, such as 124 to 99"),
        (1, "columns", ["ACL", "News"], "tables[1].columns: ['ACL', 'News'] is not allowed; expected heading: "),
        (1, "rows", {"LoRA": {"figures": "score.{column}", "published": ["1"]}},
         "tables[1].published of LoRA: '1 figures' is not allowed; "),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_table_is_named(tmp_path: Path, table: int, key: str, value: Any, message: str) -> None:
    study = deepcopy(STUDY)
    study["tables"][table][key] = value
    with pytest.raises(InputError) as caught:
        _read(tmp_path, study)
    assert str(caught.value).startswith(f"{tmp_path / 'published.yaml'}: {message}")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tables": [ROWS, ROWS]}, "tables: ['scores', 'scores'] is not allowed; expected each name once"),
        ({"doubts": [{"about": "scores/tuned/recall", "says": "s", "finding": "f"}]},
         "doubts[0].about: 'scores/tuned/recall' is not allowed; expected a table, TABLE/ROW or TABLE/ROW/COLUMN; "
         "tables: scores, grid"),
        ({"author": "A"},
         "author: unknown key; allowed: title, source, tables, introduction, doubts, differences, choices, "
         "first_samples, sections"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_the_rest_is_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        _read(tmp_path, {**STUDY, **change})
    assert str(caught.value) == f"{tmp_path / 'published.yaml'}: {message}"


def test_a_doubt_is_about_a_table_a_row_or_a_figure(tmp_path: Path) -> None:
    places = ["scores", "scores/tuned", "scores/tuned/F1", "grid/BERT/News"]
    doubts = [{"about": about, "says": "s", "finding": "f"} for about in places]
    assert [doubt.about for doubt in _read(tmp_path, {**STUDY, "doubts": doubts}).doubts] == places


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("0.5092", {"value": 0.5092, "digits": 4}),
        ("109,482,240", {"value": 109_482_240.0, "digits": 0}),
        ("0.13263%", {"value": 0.13263, "digits": 5}),
        ("77.41 ± 2.81", {"value": 77.41, "std": 2.81, "digits": 2, "end": None}),
        ("77.40±2.81", {"value": 77.4, "std": 2.81, "digits": 2}),
        ("1.3e4", {"value": 13_000.0, "digits": -3}),
        ("1.84e-2", {"value": 0.0184, "digits": 4}),
        ("1.84 × 10⁻²", {"value": 0.0184, "digits": 4}),
        ("2.11E-05", {"value": 2.11e-05, "digits": 7}),
        ("110M", {"value": 110e6, "digits": -6}),
        ("1.23B", {"value": 1.23e9, "digits": -7}),
        ("0.80-0.85", {"value": 0.8, "end": 0.85, "digits": 2, "std": None}),
        ("124 to 99", {"value": 124.0, "end": 99.0, "digits": 0}),
        ("-7", {"value": -7.0, "end": None}),
        ("−0.3", {"value": -0.3, "digits": 1, "end": None}),
        (".05 ± .01", {"value": 0.05, "std": 0.01, "digits": 2}),  # without a zero, as APA style has it
        ("12.5% – 13.5%", {"value": 12.5, "end": 13.5, "digits": 1}),
        ("−0.5–−0.3", {"value": -0.5, "end": -0.3, "digits": 1}),
        ("1 hour, 46 minutes and 38 seconds", {"value": 6398.0, "digits": 0}),
    ],
)
def test_a_text_keeps_its_digits(cell: str, expected: dict[str, Any]) -> None:
    found = printed(cell)
    assert {name: getattr(found, name) for name in ("text", *expected)} == pytest.approx({"text": cell} | expected)
    assert printed(None) is None


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["", "about 7", "7 %", "1,23", "nan", "7 ± ", "± 2", "1-2-3", "1.", ".", "an hour"],
         r"expected a figure as it was printed, such as 0\.50 or 77"),
        (["80 to 82.5", "0.8-0.85"], "expected both ends of a range with as many digits"),
        (["1e309"], "expected a figure of less than 1e308"),
    ],
)  # fmt: skip
def test_what_is_no_figure_is_named(texts: list[str], said: str) -> None:
    for text in texts:
        with pytest.raises(ValueError, match=rf"^'{text}' is not allowed; {said}"):
            printed(text)


@pytest.mark.parametrize(
    ("cell", "value", "shown"),
    [
        ("0.721894", 0.5, "0.500000"),
        ("111", 47.28, "47"),
        ("109,482,240", 109_482_240.0, "109,482,240"),
        ("110M", 109_482_240.0, "109,482,240"),
        ("0.13263%", 12.3, "12.30000%"),
        ("2.11E-05", 0.0123, "1.23E-02"),
        ("6.803596311961173e-233", 0.0, "0"),
        ("1.84 × 10⁻²", 0.018432, "1.84 × 10⁻²"),
        ("4.8 × 10⁴", 48_000.0, "4.8 × 10⁴"),
        ("0.62", 0.0001, "0.0001"),  # what is not 0 is not shown as 0
        ("0.62", 1.2e-7, "1.2e-07"),
    ],
)
def test_another_figure_has_as_many_digits(cell: str, value: float, shown: str) -> None:
    found = printed(cell)
    assert found is not None
    assert found.form.text(value) == shown


def test_spread_and_interval_have_as_many_digits_too() -> None:
    assert Form(1).text(80, 1.25, {"low": 78.25, "high": 82}) == "80.0 ± 1.2 (78.2 – 82.0)"


def test_a_figure_below_0_has_a_true_minus_sign_and_0_has_none() -> None:
    assert Form(1).text(-1234.5, None, {"low": -0.04, "high": -0.0}) == "−1,234.5 (0.0 – 0.0)"
    assert Form(1).text(-1.2e-7) == "−1.2e-07"


# Every figure in the studies' published.yaml is found as text in the report that it is of.
REPORTS = Path(ROOT).parent / "shared" / "seeds"
NUMBERS = {"bert-wikitext2": "000", "llama-frozen": "001", "bert-mlm-nsp": "002", "roberta-small": "003",
           "plm-peft": "004"}  # fmt: skip
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _plain(text: str) -> str:
    """A report's text with what LaTeX makes of ± and of powers of ten."""
    text = re.sub(r"\^\{\\pm ?([\d.]+)\}", r" ± \1", text)
    return re.sub(r" \\times 10\^\{?(-?\d+)\}?", lambda found: " × 10" + found[1].translate(RAISED), text)


def _stands(text: str, report: str) -> bool:
    forms = {text, f"{int(text):,}" if text.isdecimal() else text}
    return any(re.search(rf"(?<![\d.,]){re.escape(form)}(?![\d]|[.,]\d)", report) for form in forms)


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
    assert len(figures) > 5
    assert [text for text in figures if not _stands(text, report)] == []
