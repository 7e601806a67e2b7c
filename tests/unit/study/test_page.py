import math
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pandas as pd

from retrace.evaluation.classification import figures_of
from retrace.report.blocks import Panels, Table
from retrace.report.page import as_html, as_markdown, picture
from retrace.report.results import TaskResults
from retrace.report.svg import joined
from retrace.statistics.scales import Figure
from retrace.study.page import compared_sections, further_curves, study_sections
from retrace.study.published import ComparedTable, Doubt, PublishedStudy, PublishedTable, Row, StudyResult
from tests.study import cell_of

EVIL = "<script>*b*"
SHOWN, ONE_SEED = "80.00 ± 1.50 (78.25 – 82.00)", "outside, one seed"
CELL = cell_of("beyond", "percent", "77.41 ± 2.81", SHOWN)
NOTHING = cell_of("not measured", "percent")
BEST = {"published": {("BERT", "ACL")}, "reproduced": {("BERT", "ACL")}}


def _table(title: str = "Accuracy", section: str = "Results") -> ComparedTable:
    return ComparedTable(title=title, rows={"BERT": {"ACL": CELL, EVIL: NOTHING}}, section=section, best=BEST)


def test_figures_stand_side_by_side_with_the_best_in_bold() -> None:
    page = as_markdown("T", compared_sections([_table()]))
    evil = r"\<script\>\*b\*"
    assert f"|  | ACL, published | ACL, Retrace | {evil}, published | {evil}, Retrace |" in page
    assert "| --- | ---: | ---: | ---: | ---: |" in page
    assert "| BERT | **77.41 ± 2.81** | **80.00 ± 1.50 (78.25 – 82.00) ≠** | – | – |" in page
    page = as_html(EVIL, compared_sections([_table()]))
    assert re.findall("<b>(.*?)</b>", page) == ["77.41 ± 2.81", "80.00 ± 1.50 (78.25 – 82.00) ≠"]
    assert "<script>*b*" not in page


def test_only_a_figure_outside_is_marked_and_columns_of_figures_are_numeric() -> None:
    marked = {of: CELL.model_copy(update={"verdict": of}).reproduced_text for of in ("within", "beyond", ONE_SEED)}
    assert marked == {"within": SHOWN, "beyond": f"{SHOWN} ≠", ONE_SEED: f"{SHOWN} (≠)"}
    texts = ("6.803596311961173e-233", "2.11E-05", "1.84 × 10⁻²", "110M", "0.13263%", "0.80-0.85", "124 to 99", "–",
             "0.8 (0.7 – 0.9) to 0.75", "1.3e4", *marked.values())  # fmt: skip
    assert [text for text in texts if not Table(("c",), [(text,)]).is_numeric(0)] == []
    assert not Table(("c",), [("1 hour",)]).is_numeric(0)


def test_tables_of_a_section_stand_together() -> None:
    sections = compared_sections([_table("one", "A"), _table("two", "B"), _table("three", "A")])
    assert [section.title for section in sections] == ["A", "B"]
    assert [block for block in sections[0].blocks if isinstance(block, str)][1:] == ["one:", "three:"]


def test_the_page_has_what_is_doubtful_different_and_chosen() -> None:
    tables = (PublishedTable("questions", "", "fraction", ("c",), {"r": Row(("score.squad.full.rouge1",), ("754",))}),)
    plain = PublishedStudy("T", "S", (), introduction="A study.")
    full = replace(plain, tables=tables, doubts=(Doubt("questions", "ROUGE 754", "A count."),),
                   differences=("The last epoch.",), choices=("Batch: 16.", "Rate: 1."))  # fmt: skip
    evidence = {"ROUGE-1": "0.5000 (0.2500 – 0.7500)", "not measured": ""}
    result = StudyResult(title="T", source="S", small=True, tables={"questions": _table()})
    page = as_markdown("T", study_sections(full, result, [evidence]))
    for said in (
        "T. A study. Source: S.\n\nThis is the small run, not the published one",
        "NOT comparable",
        "questions: the report says ROUGE 754. A count.",
        "| ROUGE-1 | 0.5000 (0.2500 – 0.7500) |",
        "| not measured | – |",
        "Retrace notices: questions: squad full: off scale: rouge1 754 is not a fraction.",
        "## Where this run differs from the report's\n\nThe last epoch.\n\n## What the report leaves open\n",
        "\n\nBatch: 16.\n\n",
    ):
        assert said in page
    page = as_markdown("T", study_sections(plain, result.model_copy(update={"small": False}), []))
    assert "except for the differences that the study's page lists.\n" in page
    for said in ("NOT comparable", "of the published size", "doubtful", "Where this run differs", "leaves open"):
        assert said not in page


SCORES = {"accuracy": Figure("fraction", "higher", "accuracy")} | figures_of("f1")


def _rows(**changed: Any) -> dict[str, Panels]:
    """What the study's page draws by epoch of a task whose figures are the same at both epochs."""
    values = {"validation_loss": 0.7, "accuracy": 0.5, "f1_micro": 0.5, "f1_macro": 0.25}
    rows = [{"method": method, "seed": "1", "epoch": epoch, "training_loss": 0.7 if epoch else math.nan, **values}
            for method in ("bert", "lora") for epoch in (0, 1)]  # fmt: skip
    figures = {"f1_macro": 0.25, "accuracy": 0.5}
    seeds = {"1": SimpleNamespace(figures=figures)}
    found = {name: SimpleNamespace(figures=figures, seeds=seeds) for name in ("bert", "lora")}
    details: Any = SimpleNamespace(legend=SCORES, headlines=["accuracy"], methods=found, baselines={}, comparisons=[])
    task = TaskResults("news", "classification", details, {"bert": 0, "lora": 1}, pd.DataFrame(rows).assign(**changed))
    return {row.name: row for row in further_curves(task)}


def test_what_reports_plot_is_drawn_by_epoch_and_the_headline_in_the_tasks_section() -> None:
    rows = _rows()
    assert list(rows) == ["news-training_loss", "news-f1_micro", "news-f1_macro"]
    macro, loss = rows["news-f1_macro"], rows["news-training_loss"]
    assert (macro.title, macro.note) == ("news: f1 macro", "Macro F1 on validation by epoch.")
    assert [(panel.name, panel.value) for panel in macro.panels] == [("Bert", "25.0"), ("LoRA", "25.0")]
    assert macro.panels[0].label == "Bert: macro F1 by epoch, 25.0, 25.0"
    assert loss.note == "Training loss by epoch."
    assert [panel.value for panel in loss.panels] == ["", ""]
    assert loss.panels[0].label == "Bert: training loss by epoch, 0.7000"
    assert '<circle cx="100%"' in joined(loss.panels[0].drawn), "there is no line through one point"
    ElementTree.fromstring(picture(loss))
    assert list(_rows(training_loss=math.nan)) == ["news-f1_micro", "news-f1_macro"], "without values: not drawn"
