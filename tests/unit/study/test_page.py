import math
import re
import xml.etree.ElementTree as ElementTree
from typing import Any, cast

import pandas as pd
import pytest

from retrace.evaluation.classification import figures_of
from retrace.report.blocks import Panels, Section, Table
from retrace.report.page import as_html, as_markdown, picture
from retrace.report.results import Task
from retrace.statistics.scales import CURVES, Figure, Legend
from retrace.study.page import DRAWN, Drawing, Line, compared_sections, curves_section, line_chart, study_sections
from retrace.study.published import ComparedTable, Doubt, PublishedStudy, PublishedTable, Row, StudyResult
from tests.study import cell_of

EVIL = "<script>*b*"
CELL = cell_of("beyond", "percent", "77.41 ± 2.81", "80.00 ± 1.50 (78.25 – 82.00)")
NOTHING = cell_of("not run", "percent")
BEST = {"published": {("BERT", "ACL")}, "reproduced": {("BERT", "ACL")}}


def _table(title: str = "Accuracy", section: str = "Results") -> ComparedTable:
    return ComparedTable(title=title, rows={"BERT": {"ACL": CELL, EVIL: NOTHING}}, section=section, best=BEST)


def test_figures_stand_side_by_side_with_the_best_in_bold() -> None:
    page = as_markdown("T", compared_sections([_table()]))
    assert (
        "|  | ACL, published | ACL, Retrace | \\<script\\>\\*b\\*, published | \\<script\\>\\*b\\*, Retrace |" in page
    )
    assert "| --- | ---: | ---: | ---: | ---: |" in page
    assert "| BERT | **77.41 ± 2.81** | **80.00 ± 1.50 (78.25 – 82.00) ≠** | – | – |" in page


def test_bold_and_escaped_in_html() -> None:
    page = as_html(EVIL, compared_sections([_table()]))
    assert '<td class="n"><b>77.41 ± 2.81</b></td><td class="n"><b>80.00 ± 1.50 (78.25 – 82.00) ≠</b></td>' in page
    assert "<script>*b*" not in page
    assert page.count("<b>") == 2


@pytest.mark.parametrize(("verdict", "mark"), [("within", ""), ("beyond", " ≠"), ("outside, one seed", " (≠)")])
def test_only_a_figure_outside_is_marked(verdict: str, mark: str) -> None:
    cell = CELL.model_copy(update={"verdict": verdict})
    (section,) = compared_sections([ComparedTable(title="t", rows={"r": {"c": cell}})])
    assert isinstance(section.blocks[-1], Table)
    (row,) = section.blocks[-1].rows
    assert list(map(str, row)) == ["r", "77.41 ± 2.81", f"80.00 ± 1.50 (78.25 – 82.00){mark}"]
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


def _page(small: bool = True, evidence: dict[str, str] | None = None, rouge: str = "0.5", **more: Any) -> str:
    row = Row(("score.squad.full.rouge1",), (rouge,))
    table = PublishedTable("questions", "Questions", "fraction", ("c",), {"r": row})
    study = PublishedStudy("T", "S", (table,), introduction="A study.", **more)
    result = StudyResult(title="T", source="S", small=small, tables={"questions": _table()})
    sections = study_sections(study, result, [] if evidence is None else [evidence])
    return as_markdown("T", sections)


def test_the_page_says_whether_figures_are_comparable() -> None:
    small, whole = _page(), _page(small=False)
    assert "T. A study. Source: S." in small
    assert "the small run, not the published one" in small
    assert "NOT comparable" in small
    assert "NOT comparable" not in whole


def test_doubts_have_their_evidence() -> None:
    doubt = Doubt("questions", "ROUGE 754", "A count.")
    page = _page(doubts=(doubt,), evidence={"ROUGE-1": "0.5000 (0.2500 – 0.7500)", "not run": ""}, rouge="754")
    assert "questions: the report says ROUGE 754. A count." in page
    assert "| ROUGE-1 | 0.5000 (0.2500 – 0.7500) |" in page
    assert "| not run | – |" in page
    assert "Retrace notices: questions: squad full: off scale: rouge1 754 is no fraction." in page
    assert "doubtful" not in _page()


def test_differences_and_choices_are_paragraphs() -> None:
    page = _page(differences=("The last epoch.",), choices=("Batch: 16.", "Rate: 1."))
    assert "## Where this run differs from the report's\n\nThe last epoch.\n\n## What the report leaves open\n" in page
    assert "\n\nBatch: 16.\n\n" in page
    assert "What the report leaves open" not in _page()


def test_a_chart_is_well_formed_and_the_html_needs_nothing_else() -> None:
    (chart,) = line_chart("f", "caption", [Line("full", "full 1", [(0, 7), (1, 7)])], ("epoch", "accuracy"))
    drawn = picture(chart)
    ElementTree.fromstring(drawn)
    for text in (">full<", ">0<", ">1<"):  # the axis is marked at whole epochs
        assert text in drawn
    page = as_html("T", [Section("S", [chart])])
    assert "<svg" in page
    for outside in ("src=", "@import", "url(", "http://", "https://"):
        assert outside not in page


PRETRAINING = pd.DataFrame({"epoch": [0, 1, 2, 3], "perplexity": [9.0, 8.0, 7.0, math.nan]})


def _curve(*methods: str) -> pd.DataFrame:
    figures = {"validation_loss": 0.7, "accuracy": 0.5, "f1_micro": 0.5, "f1_macro": 0.25}
    return pd.DataFrame(
        [{"method": method, "seed": "1", "epoch": epoch, "training_loss": 0.7 if epoch else math.nan, **figures}
         for method in methods for epoch in (0, 1)]
    )  # fmt: skip


def _figures(*names: str) -> Legend:
    scores = {"accuracy": Figure("fraction", "higher")} | figures_of("f1")
    return {name: (CURVES | scores)[name] for name in names}


def _drawing(
    name: str, title: str, curve: pd.DataFrame, figures: Legend, updates: dict[tuple[str, str], Any] | None = None
) -> Drawing:
    task = Task("sst2", "classification", cast(Any, None), {}, curve, updates or {})
    return Drawing(name, title, task, list(dict.fromkeys(curve["method"])), figures)


def _charts(*drawings: Drawing, pretraining: Any = None) -> dict[str, Panels]:
    charts = curves_section(drawings, pretraining).blocks
    return {chart.name: chart for chart in charts if isinstance(chart, Panels)}


def test_one_method_has_a_chart_of_losses_and_one_of_scores() -> None:
    charts = _charts(
        _drawing("curve-1", "Figure 1: BERT", _curve("bert"), _figures("training_loss", "accuracy", "f1_macro"))
    )
    assert list(charts) == ["curve-1-loss", "curve-1-scores"]
    assert charts["curve-1-loss"].note == "Figure 1: BERT: loss, by epoch. Across: epoch; up: loss, in nats."
    for name, shown in (("accuracy", True), ("macro F1", True), ("micro F1", False), ("training loss", False)):
        assert (f">{name}<" in picture(charts["curve-1-scores"])) == shown


def test_several_methods_have_a_chart_for_each_figure() -> None:
    charts = _charts(_drawing("curve-sst2", "SST-2", _curve("full", "lora"), _figures(*DRAWN)))
    assert list(charts) == [f"curve-sst2-{name}" for name in DRAWN]
    assert ">full<" in picture(charts["curve-sst2-f1_micro"])
    assert ">lora<" in picture(charts["curve-sst2-f1_micro"])


def test_what_has_no_values_is_not_drawn() -> None:
    curve = _curve("bert").assign(training_loss=math.nan)
    assert list(_charts(_drawing("curve-1", "Figure 1", curve, _figures("training_loss", "accuracy")))) == [
        "curve-1-scores"
    ]


def test_pretraining_is_drawn_from_the_first_epoch_on() -> None:
    (chart,) = _charts(pretraining=PRETRAINING).values()
    assert chart.name == "curve-pretraining"
    tips = re.findall(r"epoch (\d): ([\d.]+)", picture(chart))
    assert tips == [("1", "8.0000"), ("2", "7.0000")]


def test_the_training_loss_is_drawn_by_update_where_the_report_shows_it() -> None:
    updates = {("bert", "1"): [(50, 0.7), (100, 0.6)], ("bert", "2"): [(50, 0.7), (100, 0.5)]}
    with_loss = _drawing("curve-1", "Figure 1", _curve("bert"), _figures("training_loss", "accuracy"), updates)
    charts = _charts(with_loss, _drawing("curve-2", "Figure 2", _curve("bert"), _figures("accuracy"), updates))
    assert [name for name in charts if name.endswith("updates")] == ["curve-1-updates"]
    assert charts["curve-1-updates"].note.startswith("Figure 1: training loss by update, each point the mean")
    assert "Across: update" in charts["curve-1-updates"].note
