import math
import re
import xml.etree.ElementTree as ElementTree
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from retrace.evaluation.classification import figures_of
from retrace.report.blocks import Panels, Table
from retrace.report.page import as_html, as_markdown, picture
from retrace.report.pretraining import perplexity_by_epoch
from retrace.report.results import Task
from retrace.statistics.scales import Figure
from retrace.study.page import compared_sections, further_curves, study_sections
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


SCORES = {"accuracy": Figure("fraction", "higher", "accuracy")} | figures_of("f1")


def _rows(**changed: Any) -> dict[str, Panels]:
    """What the study's page draws by epoch of a task whose figures are the same at both epochs."""
    values = {"validation_loss": 0.7, "accuracy": 0.5, "f1_micro": 0.5, "f1_macro": 0.25}
    rows = [{"method": method, "seed": "1", "epoch": epoch, "training_loss": 0.7 if epoch else math.nan, **values}
            for method in ("bert", "lora") for epoch in (0, 1)]  # fmt: skip
    figures = {"f1_macro": 0.25, "accuracy": 0.5}
    found = {name: SimpleNamespace(figures=figures, seeds={"1": None}) for name in ("bert", "lora")}
    details: Any = SimpleNamespace(legend=SCORES, headlines=["accuracy"], methods=found, baselines={}, comparisons=[])
    task = Task("news", "classification", details, {"bert": 0, "lora": 1}, pd.DataFrame(rows).assign(**changed))
    return {row.name: row for row in further_curves(task)}


def test_what_reports_plot_is_drawn_by_epoch_and_the_headline_in_the_tasks_section() -> None:
    rows = _rows()
    assert list(rows) == ["news-training_loss", "news-f1_micro", "news-f1_macro"]
    assert rows["news-f1_macro"].title == "news: f1 macro"
    assert rows["news-f1_macro"].note == "Macro F1 on validation by epoch."
    assert [(panel.name, panel.value) for panel in rows["news-f1_macro"].panels] == [("Bert", "25.0"), ("LoRA", "25.0")]
    assert rows["news-f1_macro"].panels[0].label == "Bert: macro F1 by epoch, 25.0, 25.0"
    assert rows["news-training_loss"].note == "Training loss by epoch."
    assert [panel.value for panel in rows["news-training_loss"].panels] == ["", ""]
    assert rows["news-training_loss"].panels[0].label == "Bert: training loss by epoch, 0.7000"
    ElementTree.fromstring(picture(rows["news-training_loss"]))


def test_what_has_no_values_is_not_drawn() -> None:
    assert list(_rows(training_loss=math.nan)) == ["news-f1_micro", "news-f1_macro"]


def test_pretraining_is_drawn_from_the_first_epoch_on() -> None:
    curve = pd.DataFrame({"epoch": [0, 1, 2, 3], "perplexity": [9.0, 8.0, 7.0, math.nan]})
    (chart,) = perplexity_by_epoch(curve)
    assert re.findall(r"epoch (\d): ([\d.]+)", picture(chart)) == [("1", "8.00"), ("2", "7.00")]
    assert perplexity_by_epoch(curve.head(1)) == []
