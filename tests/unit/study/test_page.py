import math
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from retrace.evaluation.classification import figures_of
from retrace.report.blocks import Panels, Table
from retrace.report.page import as_html, as_markdown, picture
from retrace.report.results import Task
from retrace.statistics.scales import Figure
from retrace.study.page import (
    DRAWN,
    Line,
    compared_sections,
    line_chart,
    pretraining_charts,
    study_sections,
    task_charts,
)
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
    assert re.findall("<b>(.*?)</b>", page) == ["77.41 ± 2.81", "80.00 ± 1.50 (78.25 – 82.00) ≠"]
    assert "<script>*b*" not in page


@pytest.mark.parametrize(("verdict", "mark"), [("within", ""), ("beyond", " ≠"), ("outside, one seed", " (≠)")])
def test_only_a_figure_outside_is_marked(verdict: str, mark: str) -> None:
    cell = CELL.model_copy(update={"verdict": verdict})
    assert cell.reproduced_text == f"80.00 ± 1.50 (78.25 – 82.00){mark}"
    assert Table(("c",), [(cell.reproduced_text,)]).is_numeric(0)


def test_tables_of_a_section_stand_together() -> None:
    sections = compared_sections([_table("one", "A"), _table("two", "B"), _table("three", "A")])
    assert [section.title for section in sections] == ["A", "B"]
    assert [block for block in sections[0].blocks if isinstance(block, str)][1:] == ["one:", "three:"]


def test_columns_of_printed_figures_are_numeric() -> None:
    texts = ("6.803596311961173e-233", "2.11E-05", "1.84 × 10⁻²", "110M", "0.13263%", "0.80-0.85", "124 to 99", "–",
             "0.8 (0.7 – 0.9) to 0.75", "1.3e4")  # fmt: skip
    assert [text for text in texts if not Table(("c",), [(text,)]).is_numeric(0)] == []
    assert not Table(("c",), [("1 hour",)]).is_numeric(0)


def _page(small: bool = True, evidence: dict[str, str] | None = None, rouge: str = "0.5", **more: Any) -> str:
    row = Row(("score.squad.full.rouge1",), (rouge,))
    table = PublishedTable("questions", "Questions", "fraction", ("c",), {"r": row})
    study = PublishedStudy("T", "S", (table,), introduction="A study.", **more)
    result = StudyResult(title="T", source="S", small=small, tables={"questions": _table()})
    sections = study_sections(study, result, [] if evidence is None else [evidence])
    return as_markdown("T", sections)


def test_the_page_says_whether_figures_are_comparable() -> None:
    assert "T. A study. Source: S.\n\nThis is the small run, not the published one" in _page()
    assert "NOT comparable" in _page()
    assert "NOT comparable" not in _page(small=False)


def test_doubts_have_their_evidence() -> None:
    doubt = Doubt("questions", "ROUGE 754", "A count.")
    page = _page(doubts=(doubt,), evidence={"ROUGE-1": "0.5000 (0.2500 – 0.7500)", "not run": ""}, rouge="754")
    assert "questions: the report says ROUGE 754. A count." in page
    assert "| ROUGE-1 | 0.5000 (0.2500 – 0.7500) |" in page
    assert "| not run | – |" in page
    assert "Retrace notices: questions: squad full: off scale: rouge1 754 is not a fraction." in page
    assert "doubtful" not in _page()


def test_differences_and_choices_are_paragraphs() -> None:
    page = _page(differences=("The last epoch.",), choices=("Batch: 16.", "Rate: 1."))
    assert "## Where this run differs from the report's\n\nThe last epoch.\n\n## What the report leaves open\n" in page
    assert "\n\nBatch: 16.\n\n" in page
    assert "What the report leaves open" not in _page()


def test_a_chart_is_well_formed_and_marked_at_whole_epochs() -> None:
    (chart,) = line_chart("f", "caption", [Line("full", "full 1", [(0, 7), (1, 7)])], ("epoch", "accuracy"))
    texts = [of.text for of in ElementTree.fromstring(picture(chart)).iter("{http://www.w3.org/2000/svg}text")]
    assert {"full", "0", "1"} <= {*texts}


SCORES = {"accuracy": Figure("fraction", "higher", "accuracy")} | figures_of("f1")


def _charts(methods: Sequence[str], *figures: str, updates: Any = None, **changed: Any) -> dict[str, Panels]:
    """The charts of a task whose figures are the same at both epochs."""
    values = {"validation_loss": 0.7, "accuracy": 0.5, "f1_micro": 0.5, "f1_macro": 0.25}
    rows = [{"method": method, "seed": "1", "epoch": epoch, "training_loss": 0.7 if epoch else math.nan, **values}
            for method in methods for epoch in (0, 1)]  # fmt: skip
    details: Any = SimpleNamespace(legend=SCORES)
    task = Task("sst2", "classification", details, {}, pd.DataFrame(rows).assign(**changed), updates or {})
    return {chart.name: chart for chart in task_charts("curve-1", "Figure 1: BERT", task, methods, figures)}


def test_one_method_has_a_chart_of_losses_and_one_of_scores() -> None:
    charts = _charts(["bert"], "training_loss", "accuracy", "f1_macro")
    assert list(charts) == ["curve-1-loss", "curve-1-scores"]
    assert charts["curve-1-loss"].note == "Figure 1: BERT: loss, by epoch. Across: epoch; up: loss, in nats."
    assert [name for name, _ in charts["curve-1-scores"].legend] == ["accuracy", "macro F1"]


def test_several_methods_have_a_chart_for_each_figure() -> None:
    charts = _charts(["full", "lora"], *DRAWN)
    assert list(charts) == [f"curve-1-{name}" for name in DRAWN]
    assert [name for name, _ in charts["curve-1-f1_micro"].legend] == ["full", "lora"]


def test_what_has_no_values_is_not_drawn() -> None:
    assert list(_charts(["bert"], "training_loss", "accuracy", training_loss=math.nan)) == ["curve-1-scores"]


def test_pretraining_is_drawn_from_the_first_epoch_on() -> None:
    (chart,) = pretraining_charts(pd.DataFrame({"epoch": [0, 1, 2, 3], "perplexity": [9.0, 8.0, 7.0, math.nan]}))
    assert chart.name == "curve-pretraining"
    assert re.findall(r"epoch (\d): ([\d.]+)", picture(chart)) == [("1", "8.0000"), ("2", "7.0000")]
    assert pretraining_charts(None) == []


def test_the_training_loss_is_drawn_by_update_where_the_report_shows_it() -> None:
    updates = {("bert", "1"): [(50, 0.7), (100, 0.6)], ("bert", "2"): [(50, 0.7), (100, 0.5)]}
    said = "Figure 1: BERT: training loss by update, each point the mean since the one before. Across: update; "
    assert _charts(["bert"], "training_loss", updates=updates)["curve-1-updates"].note.startswith(said)
    assert list(_charts(["bert"], "accuracy", updates=updates)) == ["curve-1-scores"]
