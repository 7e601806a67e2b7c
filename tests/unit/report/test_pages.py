import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from retrace.core.files import write_json
from retrace.evaluation.records import Details, MethodDetails
from retrace.perplexity.measures import PerplexityReport
from retrace.report import summary, svg
from retrace.report.blocks import Section
from retrace.report.page import as_html, as_markdown
from retrace.report.pretraining import pretraining_section
from retrace.report.results import Task
from retrace.report.runs import data_fold, models_folds
from retrace.report.tasks import task_panels, task_section
from retrace.statistics.scales import CURVES, Comparison, Figure, Flags, Shortfall
from tests.study import RUN, method_of

INTERVAL = {"accuracy": {"low": 0.49, "high": 0.53}}
FIGURES = {"validation_loss": 0.7, "accuracy": 0.51}
CLASSES = {name: {"precision": 0.5, "recall": 0.25, "f1": 0.75, "examples": 10} for name in ("bad", "good")}
SEED = {"epoch": 1, "figures": FIGURES, "intervals": INTERVAL, "before": {"accuracy": 0.25}}
BINS = {"confidence": [0.9], "accuracy": [0.5], "examples": [20.0]}
GROUP = {"examples": 20, "figures": {"accuracy": 0.5}, "intervals": INTERVAL}
PAIR = Comparison("accuracy", "full", "scratch", "methods", 0.02, -0.01, 0.05, "exact McNemar", 0.1, 0.2, "tie", 0.04)
DETAILS = Details.from_json({"sst2": {
    "headlines": ["accuracy"], "legend": {"accuracy": Figure("fraction", "higher", "accuracy"), **CURVES},
    "notes": {"signature": "v1"}, "comparisons": [PAIR],
    "baselines": {"majority": {"figures": {"accuracy": 0.5}, "intervals": INTERVAL}},
    "methods": {"full": method_of(
        FIGURES, {"1": SEED}, INTERVAL, {}, confusion=[[9, 1], [2.5, 7.5]], classes=CLASSES, reliability=BINS
    ) | {"groups": {"length": {"1–4 words": GROUP}}}},
}}).tasks["sst2"]  # fmt: skip
METHOD = DETAILS.methods["full"]
LOSSES = {"method": "full", "seed": "1", "training_loss": math.nan, "validation_loss": 0.7, "accuracy": 0.51}
CURVE = pd.DataFrame([{**LOSSES, "epoch": epoch} for epoch in (0, 1)])


def _task(curve: pd.DataFrame | None = None, changes: Mapping[str, Any] | None = None, **of_method: Any) -> Task:
    """SST-2 by one method, with other values in the task's details or in the method's."""
    methods = {"methods": {"full": METHOD.model_copy(update=of_method)}}
    details = DETAILS.model_copy(update=methods | dict(changes or {}))
    return Task("sst2", "classification", details, {"full": 0, "scratch": 1}, curve)


def _scores_page(changes: Mapping[str, Any] | None = None, **of_method: Any) -> str:
    return as_markdown("T", [task_section(_task(CURVE, changes, **of_method), ["sst2"])])


def test_scores_have_intervals_comparisons_and_what_is_behind_them() -> None:
    page = _scores_page()
    for line in (
        "| score | unit | majority class | Full, before | Full |",
        "| accuracy | % | 50.0 (49.0 – 53.0) | 25.0 | 51.0 (49.0 – 53.0) |",
        "Epochs kept, by seed: Full 1.",
        "| accuracy | Full − Scratch | +2.0 | −1.0 to +5.0 | exact McNemar | 0.2000 | tie | 4.0 |",
        "| bad | 10 | Full | 50.0 | 25.0 | 75.0 |",
        "signature: v1",
        "![Learning curves](figures/sst2-accuracy.svg)",
        "![Confusion](figures/sst2-confusion.svg)",
        "| Full | 1 | – | 0.7000 | 51.0 | 1 |",
    ):
        assert line in page
    assert "Warning" not in page


def test_the_expected_calibration_error_stands_beside_its_plot() -> None:
    task = _task(figures=FIGURES | {"expected_calibration_error": 0.123})
    (shown,) = (of for of in task_panels(task) if of.title == "Calibration")
    assert [panel.value for panel in shown.panels] == ["12.3"]


def test_baselines_without_the_headline_are_not_spoken_of() -> None:
    changes = {"headlines": ["roc_auc"], "legend": {"roc_auc": Figure("fraction", "higher"), **CURVES}}
    task = _task(CURVE.rename(columns={"accuracy": "roc_auc"}), changes, figures={"roc_auc": 0.6}, intervals={})
    page = as_markdown("T", [*summary.summary_sections([task], {}, {}), Section("S", task_panels(task))])
    assert "| Full | – | **60.0** |" in page
    assert "![Learning curves](figures/sst2-roc_auc.svg)" in page
    assert "baseline" not in page
    assert "baseline" not in str(summary.verdict([task], None, {}))


def _of_groups(**kinds: Mapping[str, int]) -> list[tuple[str, str]]:
    """The titles and notes of what is drawn of groups of so many examples."""
    group = METHOD.groups["length"]["1–4 words"]
    groups = {kind.replace("_", " "): {name: group.model_copy(update={"examples": of}) for name, of in sizes.items()}
              for kind, sizes in kinds.items()}  # fmt: skip
    return [(of.title, of.note) for of in task_panels(_task(groups=groups)) if of.title.startswith("By ")]


def test_a_group_of_all_examples_is_not_drawn() -> None:
    assert _of_groups(length={"5 words": 100}, question_word={"other": 100}) == []


def test_what_is_drawn_says_how_large_groups_by_length_are() -> None:
    (_, note), (title, _) = sorted(_of_groups(length={"1–4 words": 80, "5 words": 20}, question_word={"who": 30}))
    assert note == "Accuracy by words of the text, in groups of 80 and 20 reviews. Bars: 95% intervals."
    assert title == "By question word"


def test_an_axis_below_zero_has_a_true_minus_sign() -> None:
    group = {"examples": 5, "intervals": {"accuracy": {"low": -0.5, "high": 0.5}}}
    of = METHOD.groups["length"]["1–4 words"]
    groups = {"length": {"1–4 words": of.model_copy(update=group), "5 words": of}}
    task = _task(None, {"legend": {"accuracy": Figure("correlation", "higher")}}, groups=groups)
    (shown,) = (of for of in task_panels(task) if of.title == "By length")
    assert ">−0.5</text>" in svg.joined(shown.panels[0].drawn)


@pytest.mark.parametrize(("p", "text"), [(0.2, "0.2000"), (0.0001, "0.0001"), (0.00002, "below 0.0001")])
def test_a_small_p_value_is_a_bound(p: float, text: str) -> None:
    assert f"| exact McNemar | {text} | tie |" in _scores_page({"comparisons": [replace(PAIR, p_corrected=p)]})


@pytest.mark.parametrize(
    ("verdict", "note"),
    [("models differ", "cannot be told apart from one seed"), ("no difference shown", "one seed says nothing")],
)
def test_a_verdict_from_one_seed_is_explained(verdict: str, note: str) -> None:
    page = _scores_page({"comparisons": [replace(PAIR, verdict=verdict)]})
    assert f"| 0.2000 | {verdict} |" in page
    assert note in page


def test_scores_have_their_spread_over_seeds() -> None:
    assert "51.0 ± 3.0 (49.0 – 53.0)" in _scores_page(std={"validation_loss": 0.1, "accuracy": 0.03})


def _with_flags(flags: Flags, seeds: int = 1) -> MethodDetails:
    flagged = METHOD.seeds["1"].model_copy(update={"flags": flags})
    return METHOD.model_copy(update={"seeds": {str(seed + 1): flagged for seed in range(seeds)}})


def test_flags_become_warnings_with_their_evidence() -> None:
    short = Shortfall("accuracy", 0.8, "scratch", 0.75, -0.0125, 0.1125)
    method = _with_flags({"one_class_only": "all 20 are called good"}).model_copy(update={"flags": {"below": short}})
    found = summary.found_flags(Details(tasks={"sst2": DETAILS.model_copy(update={
        "methods": {"full": method}, "flags": {"dev_in_training": "2 of 20"},
    })}), None)  # fmt: skip
    assert summary.flag_lines(found) == [
        "sst2 full 1: one class only: all 20 are called good",
        "sst2 full: below: accuracy 0.8, scratch 0.75; difference 0.05 (95% interval -0.0125 to 0.113)",
        "sst2 data: dev in training: 2 of 20",
    ]
    assert summary.flag_warnings(found) == {
        "One class only: Full on reviews": [
            summary.MEANINGS["one_class_only"], "Reviews, Full, seed 1: all 20 are called good."
        ],
        "Below: Full on reviews": [
            "Reviews, Full: accuracy 80.0, Scratch 75.0; difference +5.0 (95% interval −1.2 to +11.2)."
        ],
        "Dev in training: the data on reviews": ["Reviews, the data: 2 of 20."],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("count", "start", "end"),
    [
        (0, "flags: none", ""),
        (1, "flags: 1: squad full 1: one class only: evidence", ""),
        (
            summary.MOST_FLAGS,
            f"flags: {summary.MOST_FLAGS}: ",
            f"squad full {summary.MOST_FLAGS}: one class only: evidence",
        ),
        (summary.MOST_FLAGS + 97, f"flags: {summary.MOST_FLAGS + 97}: ", "; and 97 more, which the report says"),
    ],
)
def test_the_flags_line_has_the_first_flags_and_counts_the_rest(count: int, start: str, end: str) -> None:
    methods = {"full": _with_flags({"one class only": "evidence"}, count)}
    line = summary.flags_line(
        summary.found_flags(Details(tasks={"squad": DETAILS.model_copy(update={"methods": methods})}), None)
    )
    assert line.startswith(start)
    assert line.endswith(end)


def test_the_data_page_has_the_cards_of_further_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sst2 = {"train": {"sentences": 1200}, "dev": {"sentences": 2}, "shared_between_splits": 0}
    card = {"text": {}, "sst2": sst2, "squad": {}, "findings": [], "origin": {"sst2": {"config": "sst2"}}}
    parts = {"dev": {"examples": 1500, "classes": {"examples": 900, "world_news": 600}}}
    write_json(Path("data/classification/news/card.json"), {"parts": parts, "findings": ["dev is odd"]})
    grid = {"tasks": ["sst2", "news"], "methods": ["full"], "squad_methods": [], "seeds": [1]}
    page = as_markdown("T", [Section("S", [data_fold(card, {"finetune": grid})])])
    assert "Note: news: dev is odd." in page
    assert [line for line in page.split("\n") if "| sst2 |" in line or "| news |" in line] == [
        "| sst2 | train | sentences | 1,200 |",
        "| sst2 | dev | sentences | 2 |",
        "| news | dev | examples | 1,500 |",
        "| news | dev | examples | 900 |",  # a class of this name
        r"| news | dev | world\_news | 600 |",
    ]


UNITS = {"perplexity_per_token": 9.0, "perplexity_per_word": 20.0, "bits_per_byte": 1.0}
ROW = {"epoch": 1, "training_loss": 3.0, "validation_loss": 2.2, "perplexity": 9.03}


def _perplexity_page(row: dict[str, float], flags: Mapping[str, str] | None = None, **measures: object) -> str:
    found = {"masked": UNITS, "unigram": UNITS} | measures
    report = PerplexityReport.from_json({"valid": found | {"beats_unigram": True, "flags": flags or {}}})
    updates = pd.DataFrame({"update": [1, 2], "training_loss": [4.0, 3.0]})
    record = RUN.model_copy(update={"updates": 2, "tokens": 2000})
    return as_markdown("T", [pretraining_section(report, pd.DataFrame([ROW | row]), updates, record)])


def test_a_model_that_tells_no_sentences_apart_is_flagged() -> None:
    plain, poor, good = (
        _perplexity_page(extra) for extra in ({}, {"next_sentence_accuracy": 0.51}, {"next_sentence_accuracy": 0.93})
    )
    assert "next-sentence" not in plain
    assert "| 93.0 |" in good
    assert ["does not tell sentences" in page for page in (plain, poor, good)] == [False, True, False]


def test_a_loss_that_has_the_pairs_in_it_is_not_drawn_as_a_perplexity() -> None:
    report = PerplexityReport.from_json({"valid": {"unigram": UNITS, "beats_unigram": True, "flags": {}}})
    updates, record = pd.DataFrame({"update": [1], "training_loss": [4.0]}), RUN.model_copy(update={"tokens": 2000})
    pages = [
        as_html("T", [pretraining_section(report, pd.DataFrame([ROW | more]), updates, record)])
        for more in ({}, {"next_sentence_accuracy": 0.93})
    ]
    assert ["training loss 4.00, perplexity 55" in page for page in pages] == [True, False]


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"from": None}, "Training started from random weights."),
        ({"from": "org/name@0123", "license": "mit"}, "started from the weights of org/name@0123 (licence: mit)."),
        ({"from": "folder@0123", "commit": None}, "Training started from the weights of folder@0123."),
    ],
)
def test_the_model_fold_says_what_training_started_from(facts, said: str) -> None:
    assert said in as_markdown("T", [Section("S", models_folds({"": (facts, {"a": 1})}, {}))])


def test_perplexities_have_intervals_where_there_are_some() -> None:
    interval = {name: {"low": 0.5, "high": 1234.5} for name in UNITS}
    page = _perplexity_page({}, masked={**UNITS, "intervals": interval})
    intervals = "9.00 (0.50 – 1,234.50) | 20.00 (0.50 – 1,234.50) | 1.000 (0.500 – 1,234.500)"
    assert f"| masked, fixed masks | valid | {intervals} |" in page
    assert "A dash" not in page
    assert "| unigram baseline | valid | 9.00 | 20.00 | 1.000 |" in page


def test_a_perplexity_that_is_absent_or_huge_is_shown_as_such() -> None:
    interval = {"perplexity_per_token": {"low": 8.0, "high": 10.0}, "perplexity_per_word": {"low": 2.5e9, "high": None}}
    huge = {"perplexity_per_token": 9.0, "perplexity_per_word": 1.25e300, "bits_per_byte": None, "intervals": interval}
    page = _perplexity_page({"perplexity": math.nan}, masked=huge, unigram=dict.fromkeys(UNITS))
    assert "| masked, fixed masks | valid | 9.00 (8.00 – 10.00) | 1.25e+300 (2.50e+09 – –) | – |" in page
    assert "| unigram baseline | valid | – | – | – |" in page
    assert "A dash: too large for a float" in page
    assert "A dash" not in _perplexity_page({})


def test_a_model_no_better_than_word_frequencies_is_a_warning_with_its_evidence() -> None:
    page = _perplexity_page({}, {"not_above_unigram": "a likelihood"})
    assert "Warning: valid language model: not above unigram: a likelihood." in page
