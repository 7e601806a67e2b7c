import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from retrace.core.files import write_json
from retrace.core.settings import plugin_names
from retrace.evaluation.classification import figures_of
from retrace.evaluation.records import AnswerBreakdown, ClassBreakdown, Details, MethodDetails
from retrace.perplexity.measures import LIKELIHOOD, PerplexityReport
from retrace.report import browser, page, summary, svg
from retrace.report.blocks import Panels, Section, TableCell
from retrace.report.browser import Opinion, Predictions, _packed
from retrace.report.flags import (
    MEANINGS,
    MOST_FLAGS,
    flag_lines,
    flag_warnings,
    flags_text,
    found_flags,
    perplexity_flags,
)
from retrace.report.folds import task_folds
from retrace.report.page import as_html, as_markdown
from retrace.report.pretraining import ABSENT, perplexity_by_epoch, pretraining_section
from retrace.report.results import TaskResults, judged, most_seeds, read_tasks, shares_of
from retrace.report.runs import data_fold, models_folds
from retrace.report.tasks import calibration, confusion, learning, losses, task_panels, task_section, thresholds
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
CURVE = pd.DataFrame([{**LOSSES, "epoch": epoch, "updates": 10 * epoch} for epoch in (0, 1)])


def _task(curve: pd.DataFrame | None = None, changes: Mapping[str, Any] | None = None, **of_method: Any) -> TaskResults:
    """SST-2 by one method, with other values in the task's details or in the method's."""
    methods = {"methods": {"full": METHOD.model_copy(update=of_method)}}
    details = DETAILS.model_copy(update=methods | dict(changes or {}))
    return TaskResults("sst2", "classification", details, {"full": 0, "scratch": 1}, curve)


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
    assert "test set" not in page


@pytest.mark.parametrize(("scale", "is_said"), [("fraction", True), ("correlation", False)])
def test_differences_of_shares_are_said_to_be_in_points(scale: str, is_said: bool) -> None:
    page = _scores_page({"legend": {"accuracy": Figure(scale, "higher", "accuracy"), **CURVES}})
    assert ("Differences of accuracy are in percentage points." in page) == is_said


def test_the_interval_of_a_pair_shows_on_which_side_of_no_difference_it_lies() -> None:
    assert "| +2.0 | +0.03 to +5.0 |" in _scores_page({"comparisons": [replace(PAIR, low=0.0003)]})


def test_before_training_a_score_is_the_mean_over_seeds_and_the_epoch_of_each_seed_is_named() -> None:
    """25 and 75, at epochs 1 and 3."""
    other = METHOD.seeds["1"].model_copy(update={"before": {"accuracy": 0.75}, "epoch": 3})
    page = _scores_page(seeds={"1": METHOD.seeds["1"], "2": other})
    assert "| accuracy | % | 50.0 (49.0 – 53.0) | 50.0 | 51.0 (49.0 – 53.0) |" in page
    assert "Epochs kept, by seed: Full 1, 3." in page
    said = "A method’s figures are means over seeds. After ±: the standard deviation over seeds."
    assert [said in shown for shown in (page, _scores_page())] == [True, False]


def test_a_count_has_no_deviation_over_seeds() -> None:
    legend = {**DETAILS.legend, "total": Figure("count", "neither", "questions")}
    page = _scores_page({"legend": legend}, figures=FIGURES | {"total": 10}, std={"accuracy": 0.03, "total": 2.0})
    assert "| questions |  | – | – | 10 |" in page
    assert "| 51.0 ± 3.0 (49.0 – 53.0) |" in page


@pytest.mark.parametrize(
    ("names", "keys", "said"),
    [
        (("bad", "good"), ("accuracy", "precision", "f1"), "Precision and F1: of the class good; macro, "),
        (("bad", "good"), ("f1_macro", "f1"), "F1: of the class good; macro, "),
        (("bad", "good"), ("accuracy", "f1_macro"), ""),
        (("bad", "fair", "good"), ("f1",), ""),  # a metric of one's own
    ],
)
def test_a_figure_of_one_class_is_said_to_be_of_the_second_of_two(names, keys: Sequence[str], said: str) -> None:
    found = ClassBreakdown(confusion=[], classes=dict.fromkeys(names, CLASSES["bad"]), reliability={})
    figures = figures_of("precision") | figures_of("f1") | {"accuracy": Figure("fraction", "higher", "accuracy")}
    of_method = {"figures": dict.fromkeys(keys, 0.5), "intervals": {}, "breakdown": found}
    page = as_markdown("T", [Section("S", task_folds(_task(None, {"legend": figures}, **of_method)))])
    assert ("of the class" in page) == bool(said)
    assert said in page


@pytest.mark.parametrize(("figure", "is_said"), [("rougeL", True), ("meteor_exact_stem", True), ("f1", False)])
def test_it_is_said_that_scores_of_words_are_low_for_short_answers(figure: str, is_said: bool) -> None:
    """As on the sample, where exact match is 98% and BLEU is 0."""
    seed = {"epoch": 1, "figures": {figure: 0.5}, "intervals": {}, "before": {}}
    of = {"headlines": [figure], "legend": {figure: Figure("fraction", "higher", figure)}, "comparisons": [],
          "baselines": {}, "methods": {"full": method_of({figure: 0.5}, {"1": seed}, {}, {})}}  # fmt: skip
    task = TaskResults("squad", "question_answering", Details.from_json({"squad": of}).tasks["squad"], {"full": 0})
    page = as_markdown("T", [Section("S", task_folds(task))])
    assert ("METEOR, BLEU and ROUGE: of answerable questions alone." in page) == is_said


def test_a_learning_curve_is_the_mean_over_seeds_and_only_a_headline_stands_beside_a_baseline() -> None:
    """Two seeds: 20 and 30 before training, 40 and 80 after it; with losses of 0.9 and 0.7, and 0.5 and 0.4."""
    rows = [{"method": "full", "seed": seed, "epoch": epoch, "accuracy": accuracy, "validation_loss": loss}
            for seed, epoch, accuracy, loss in (
                ("1", 0, 0.2, 0.9), ("1", 1, 0.4, 0.5), ("2", 0, 0.3, 0.7), ("2", 1, 0.8, 0.4))]  # fmt: skip
    task = _task(pd.DataFrame(rows))
    (accuracy,), (loss,) = (learning(task, key) for key in ("accuracy", "validation_loss"))
    assert [row.panels[0].label for row in (accuracy, loss)] == [
        "Full: accuracy by epoch, 25.0, 60.0", "Full: validation loss by epoch, 0.8000, 0.4500"
    ]  # fmt: skip
    assert accuracy.note == "Accuracy on validation by epoch. Dashed: the best baseline (majority class, 50.0)."
    assert loss.note == "Validation loss on validation by epoch."
    assert [svg.joined(row.panels[0].drawn).count('class="dash"') for row in (accuracy, loss)] == [1, 0]


def test_what_one_seed_lacks_has_no_mean_over_the_others_before_training_either() -> None:
    """As where a metric needs a text that is called good: before training, the second of two seeds calls none so."""
    accuracies = (("1", 0, 0.25), ("1", 1, 0.5), ("2", 0, math.nan), ("2", 1, 0.52))
    rows = [{"method": "full", "seed": seed, "epoch": epoch, "accuracy": of} for seed, epoch, of in accuracies]
    seeds = {"1": METHOD.seeds["1"], "2": METHOD.seeds["1"].model_copy(update={"before": {}})}
    task = _task(pd.DataFrame(rows), seeds=seeds)
    page = as_markdown("T", [Section("S", task_folds(task))])
    assert "| accuracy | % | 50.0 (49.0 – 53.0) | – | 51.0 (49.0 – 53.0) |" in page
    (row,) = learning(task, "accuracy")
    assert row.panels[0].label == "Full: accuracy by epoch, 51.0"


def test_the_expected_calibration_error_stands_beside_its_plot() -> None:
    task = _task(figures=FIGURES | {"expected_calibration_error": 0.123})
    (shown,) = (of for of in task_panels(task) if of.title == "Calibration")
    assert [panel.value for panel in shown.panels] == ["12.3"]


def test_what_is_pooled_or_averaged_over_seeds_says_so() -> None:
    """Two seeds of which one is as overconfident as the other is unsure lie on the line, and have an error of 10."""
    figures = FIGURES | {"expected_calibration_error": 0.1}
    for seeds, pooled, averaged in ((1, "", ""), (2, ", of all seeds together", ", the mean over seeds")):
        task = _task(figures=figures, seeds={str(seed): METHOD.seeds["1"] for seed in range(seeds)})
        (drawn,) = (of for of in task_panels(task) if of.title == "Calibration")
        error = f"; the figure is the expected calibration error, in points{averaged}."
        assert drawn.note.endswith(f"Larger dots: more examples{pooled}{error}")
        page = as_markdown("T", [Section("S", task_folds(task))])
        assert ("Means over seeds." in page) == (seeds > 1), "of each class"


def test_baselines_without_the_headline_are_not_spoken_of() -> None:
    changes = {"headlines": ["roc_auc"], "legend": {"roc_auc": Figure("fraction", "higher"), **CURVES}}
    task = _task(CURVE.rename(columns={"accuracy": "roc_auc"}), changes, figures={"roc_auc": 0.6}, intervals={})
    page = as_markdown("T", [*summary.summary_sections([task], {}, {}), Section("S", task_panels(task))])
    assert "| Full | – | **60.0** |" in page
    assert "![Learning curves](figures/sst2-roc_auc.svg)" in page
    assert "baseline" not in page
    assert summary.verdict([task], None, {}) == []


def _of_groups(**kinds: Mapping[str, int]) -> list[tuple[str, str]]:
    """The titles and notes of what is drawn of groups of so many examples."""
    group = METHOD.groups["length"]["1–4 words"]
    groups = {kind.replace("_", " "): {name: group.model_copy(update={"examples": of}) for name, of in sizes.items()}
              for kind, sizes in kinds.items()}  # fmt: skip
    return [(of.title, of.note) for of in task_panels(_task(groups=groups)) if of.title.startswith("By ")]


def test_what_is_drawn_says_how_large_groups_by_length_are_and_no_group_is_of_all_examples() -> None:
    (_, note), (title, _) = sorted(_of_groups(length={"1–4 words": 80, "5 words": 20}, question_word={"who": 30}))
    assert note == "Accuracy by words of the text, in groups of 80 and 20 reviews. Bars: 95% intervals."
    for text in ("passage", "first text"):
        ((_, note),) = _of_groups(length={f"1–4 words of {text}": 80, f"5 words of {text}": 20})
        assert note == f"Accuracy by words of the {text}, in groups of 80 and 20 reviews. Bars: 95% intervals."
    assert title == "By question word"
    assert _of_groups(length={"5 words": 100}, question_word={"other": 100}) == []


def test_a_group_stands_beside_all_examples_and_is_left_out_where_it_has_no_score() -> None:
    group = METHOD.groups["length"]["1–4 words"]
    words = {"who": group.model_copy(update={"examples": 5}),
             "why": group.model_copy(update={"examples": 1, "figures": {}})}  # fmt: skip
    (shown,) = (
        of for of in task_panels(_task(groups=METHOD.groups | {"question word": words})) if of.title.startswith("By ")
    )
    tips = re.findall(r'data-t="([^"]+)"', svg.joined(shown.panels[0].drawn))
    assert tips == [
        "all: 51.0 (95% interval 49.0 to 53.0)\n20 reviews",
        "who: 50.0 (95% interval 49.0 to 53.0)\n5 reviews",
    ]


def test_the_training_loss_is_that_of_its_own_method_by_epoch() -> None:
    """Two updates, the last one at the end of epoch 2; a seed has both, the other the last one only."""
    rows = [{"method": method, "seed": seed, "epoch": epoch, "validation_loss": 1.0}
            for method in ("full", "lora") for seed in "01" for epoch in (0, 1, 2)]  # fmt: skip
    updates = {("full", "0"): [(2, 2.0)], ("full", "1"): [(1, 3.0), (2, 2.0)],
               ("lora", "0"): [(1, 4.0), (2, 4.0)], ("lora", "1"): [(1, 4.0), (2, 4.0)]}  # fmt: skip
    task = replace(_compared({"full": 0.9, "lora": 0.8}), curve=pd.DataFrame(rows), updates=updates)
    (row,) = losses(task)
    drawn = [re.findall(r'points="([^"]+)" class="thin"', svg.joined(panel.drawn)) for panel in row.panels]
    assert drawn == [["50,25 100,50"], ["50,0 100,0"]], "in % of the box, whose loss is from 4 above to 0 below"


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("rdrop", "called"), [(0.0, "training loss"), (5.0, "training loss with R-Drop’s divergence")])
def test_a_training_loss_that_includes_the_divergence_says_so(rdrop: float, called: str) -> None:
    Path("reports/curves/tasks").mkdir(parents=True)
    CURVE.to_csv("reports/curves/tasks/sst2.csv", index=False)
    Path("predictions/sst2/full/1").mkdir(parents=True)
    Path("predictions/sst2/full/1/updates.json").write_text("[[10, 0.6]]", encoding="utf-8")
    grid = {"tasks": ["sst2"], "methods": ["full"], "questions": [], "squad_methods": [], "seeds": [1]}
    details = Details(tasks={"sst2": DETAILS, "sst2-test": DETAILS})
    tasks = read_tasks(details, {"finetune": grid, "sst2": {"rdrop": rdrop}})
    assert [task.curve is None for task in tasks] == [False, True], "a test set has no learning curve"
    page = as_markdown("T", [task_section(task, ["sst2"]) for task in tasks])
    assert f"In nats. Thin: {called}, by update; thick: validation, by epoch." in page
    assert f"| {called}, nats | validation loss, nats | accuracy, % |" in page
    assert "which did not choose the epoch" in page, "there is only one"


@pytest.mark.parametrize(
    ("name", "said"),
    [("sst2", "chose the epoch: the one with the lowest loss on it was kept. Scores on the test set follow."),
     ("sst2-test", "Scores on the test set, which played no part in choosing the epoch.")],
)  # fmt: skip
def test_it_is_said_which_set_the_epoch_was_chosen_on(name: str, said: str) -> None:
    assert said in as_markdown("T", [task_section(replace(_task(), name=name), ["sst2", "sst2-test"])])


@pytest.mark.parametrize(
    ("settings", "said"),
    [({}, "the one with the lowest loss on it was kept."), ({"checkpoint": "best"}, "the one with the lowest loss"),
     ({"checkpoint": "last"}, "which did not choose the epoch: the last one was kept.")],
)  # fmt: skip
def test_it_is_said_which_epoch_the_settings_keep(settings: Mapping[str, Any], said: str) -> None:
    grid = {"tasks": ["sst2"], "methods": ["full"], "questions": [], "squad_methods": [], "seeds": [1]}
    params = {"finetune": grid, "sst2": settings}
    (task,) = read_tasks(Details(tasks={"sst2": DETAILS}), params, with_curves=False)
    assert said in as_markdown("T", [task_section(task, ["sst2"])])


def test_an_axis_below_zero_has_a_true_minus_sign() -> None:
    group = {"examples": 5, "intervals": {"accuracy": {"low": -0.5, "high": 0.5}}}
    of = METHOD.groups["length"]["1–4 words"]
    groups = {"length": {"1–4 words": of.model_copy(update=group), "5 words": of}}
    task = _task(None, {"legend": {"accuracy": Figure("correlation", "higher")}}, groups=groups)
    (shown,) = (of for of in task_panels(task) if of.title == "By length")
    assert ">−0.5</text>" in svg.joined(shown.panels[0].drawn)


def test_a_small_p_value_is_a_bound_and_a_verdict_from_one_seed_is_explained() -> None:
    for change, row, is_explained in (
        ({"p_corrected": 0.0001}, "| exact McNemar | 0.0001 | tie |", False),
        ({"p_corrected": 0.00002}, "| exact McNemar | \\<0.0001 | tie |", False),
        ({"verdict": "full"}, "| 0.2000 | Full |", False),
        ({"verdict": "models differ"}, "| 0.2000 | models differ |", True),
        ({"verdict": "no difference shown"}, "| 0.2000 | no difference shown |", True),
    ):
        page = _scores_page({"comparisons": [replace(PAIR, **change), replace(PAIR, figure="validation_loss")]})
        assert row in page
        assert page.count("| exact McNemar |") == 1, "of the figures that methods are judged by"
        assert ("one seed says nothing about the methods" in page) == is_explained


def _with_flags(flags: Flags, seeds: int = 1) -> MethodDetails:
    flagged = METHOD.seeds["1"].model_copy(update={"flags": flags})
    return METHOD.model_copy(update={"seeds": {str(seed + 1): flagged for seed in range(seeds)}})


def test_flags_become_warnings_with_their_evidence() -> None:
    short = Shortfall("accuracy", 0.8, "scratch", 0.75, -0.0125, 0.1125)
    method = _with_flags({"one_class_only": "all 20 are called good"}).model_copy(update={"flags": {"below": short}})
    found = found_flags(Details(tasks={"sst2": DETAILS.model_copy(update={
        "methods": {"full": method}, "flags": {"dev_in_training": "2 of 20"},
    })}), None)  # fmt: skip
    assert flag_lines(found) == [
        "sst2 full 1: one class only: all 20 are called good",
        "sst2 full: below: accuracy 80.0, Scratch 75.0; difference +5.0 (95% interval −1.2 to +11.2)",
        "sst2: validation examples in the training data: 2 of 20",
    ]
    assert flag_warnings(found) == {
        "One class only: Full on reviews": [
            MEANINGS["one_class_only"], "Reviews, Full, seed 1: all 20 are called good."
        ],
        "Below: Full on reviews": [
            "Reviews, Full: accuracy 80.0, Scratch 75.0; difference +5.0 (95% interval −1.2 to +11.2)."
        ],
        "Validation examples in the training data: reviews": [
            MEANINGS["dev_in_training"], "Reviews: 2 of 20."
        ],
    }  # fmt: skip


def test_what_is_worse_by_the_whole_interval_is_not_merely_called_not_better() -> None:
    """Two seeds, of which one is worse; a loss is worse where it is higher."""
    worse = Shortfall("accuracy", 0.5, "tfidf", 0.7, -0.3, -0.1)
    unclear = Shortfall("accuracy", 0.69, "tfidf", 0.7, -0.11, 0.09)
    seeds = {str(seed): METHOD.seeds["1"].model_copy(update={"flags": {"not_above_tfidf": short}})
             for seed, short in enumerate((worse, unclear), 1)}  # fmt: skip
    details = DETAILS.model_copy(update={"methods": {"full": METHOD.model_copy(update={"seeds": seeds})}})
    found = found_flags(Details(tasks={"sst2": details}), None)
    warnings = flag_warnings(found)
    assert {title: lines[0] for title, lines in warnings.items()} == {
        "Worse than TF-IDF: Full on reviews": "Worse than logistic regression on words and pairs of words (TF-IDF).",
        "Not above TF-IDF: Full on reviews": "Not shown to be better than logistic regression on words and pairs of "
        "words (TF-IDF).",
    }
    assert [line.split(": ")[1] for line in flag_lines(found)] == ["worse than TF-IDF", "not above TF-IDF"]
    lower = {"accuracy": Figure("loss", "lower")}
    assert [of._replace(legend=lower).is_worse for of in found] == [False, False]
    higher_loss = replace(worse, low=0.1, high=0.3)
    assert found[0]._replace(evidence=higher_loss, legend=lower).is_worse
    of_scratch = found[0]._replace(flag="not_above_scratch", evidence=replace(worse, other="scratch"))
    assert of_scratch.title == "not above training from scratch", "their comparison, which is corrected, may be a tie"


@pytest.mark.parametrize(
    ("high", "title", "end"), [(-0.0004, "worse than TF-IDF", "−0.04"), (0.0004, "not above TF-IDF", "+0.04")]
)
def test_an_interval_that_ends_close_to_0_does_so_on_the_side_that_the_verdict_goes_by(
    high: float, title: str, end: str
) -> None:
    """0.04 points below or above 0, where one digit would print 0.0 beside both verdicts."""
    short = Shortfall("accuracy", 0.78, "tfidf", 0.8, -0.04, high)
    details = DETAILS.model_copy(update={"methods": {"full": _with_flags({"not_above_tfidf": short})}})
    said = f"accuracy 78.0, TF-IDF 80.0; difference −2.0 (95% interval −4.0 to {end})"
    assert flag_lines(found_flags(Details(tasks={"sst2": details}), None)) == [f"sst2 full 1: {title}: {said}"]


def test_a_language_model_that_does_not_beat_word_frequencies_is_compared_by_perplexity() -> None:
    short = Shortfall(LIKELIHOOD, -math.log(400), "unigram", -math.log(200), -math.log(2.5), -math.log(1.6))
    report = PerplexityReport.from_json(
        {"valid": {"masked": UNITS, "unigram": UNITS, "beats_unigram": False, "flags": {"not_above_unigram": short}}}
    )
    found = perplexity_flags(report)
    said = "perplexity per token 400.0, a unigram model’s 200.0; 2.00 times as high (95% interval 1.60 to 2.50)"
    assert flag_lines(found) == [f"language model, validation text: worse than a unigram model: {said}"]
    assert flag_warnings(found) == {
        "Worse than a unigram model: the language model on validation text": [
            "Worse than a model that knows only how frequent each token is.", f"Validation text: {said}."
        ]
    }  # fmt: skip


@pytest.mark.parametrize(("low", "title"), [(1.002, "worse than"), (0.998, "not above")])
def test_a_ratio_of_perplexities_close_to_1_is_on_the_side_that_the_verdict_goes_by(low: float, title: str) -> None:
    """As of a model that has learned how frequent tokens are, and nothing else yet."""
    short = Shortfall(LIKELIHOOD, -math.log(200.8), "unigram", -math.log(200), -math.log(1.02), -math.log(low))
    report = PerplexityReport.from_json(
        {"valid": {"masked": UNITS, "unigram": UNITS, "beats_unigram": False, "flags": {"not_above_unigram": short}}}
    )
    said = f"perplexity per token 200.8, a unigram model’s 200.0; 1.004 times as high (95% interval {low} to 1.02)"
    assert flag_lines(perplexity_flags(report)) == [f"language model, validation text: {title} a unigram model: {said}"]


@pytest.mark.parametrize(
    ("task", "name"), [("mNLI", "mNLI"), ("sst2-test", "reviews, test set"), ("mNLI-test", "mNLI, test set")]
)
def test_a_warning_names_a_task_as_the_settings_do(task: str, name: str) -> None:
    details = DETAILS.model_copy(update={"methods": {"full": _with_flags({"one_class_only": "all"})}})
    found = found_flags(Details(tasks={task: details}), None)
    assert [*flag_warnings(found)] == [f"One class only: Full on {name}"]


def test_the_first_flags_are_printed_and_the_rest_counted() -> None:
    def lines(count: int) -> list[str]:
        task = DETAILS.model_copy(update={"methods": {"full": _with_flags({"one_class_only": "all"}, count)}})
        return flags_text(found_flags(Details(tasks={"squad": task}), None)).split("\n")

    most = MOST_FLAGS
    first = [f"  squad full {seed + 1}: one class only: all" for seed in range(most)]
    assert [lines(0), lines(1)] == [["flags: none"], ["flags: 1", first[0]]]
    assert lines(most) == [f"flags: {most}", *first]
    assert lines(most + 97) == [f"flags: {most + 97}", *first, "  97 more in the report"]


def test_the_best_threshold_is_marked_where_every_method_may_abstain() -> None:
    """At 0 the methods score 60 and 50; the best of each is elsewhere, and is said to be optimistic."""
    curves = {
        "full": {"threshold": [-2.0, 0.0, 3.0], "f1": [40.0, 60.0, 71.26], "exact_match": [0.0, 0.0, 0.0]},
        "scratch": {"threshold": [-2.0, 0.0, 3.0], "f1": [55.5, 50.0, 10.0], "exact_match": [0.0, 0.0, 0.0]},
    }
    counts = {"answered": 6.0, "answerable": 7, "questions": 10}
    found = {name: AnswerBreakdown(**counts, threshold_curve=curve) for name, curve in curves.items()}
    methods = {"full": method_of({"f1": 60.0}, {}, {}, {}), "scratch": method_of({"f1": 50.0}, {}, {}, {})}
    of = {"headlines": ["f1"], "legend": {"f1": Figure("percent", "higher", "F1"), **CURVES}, "comparisons": [],
          "baselines": {}, "methods": methods}  # fmt: skip
    details = Details.from_json({"squad": of}).tasks["squad"]
    task = TaskResults("squad", "question_answering", details, {"full": 0, "scratch": 1})
    (row,) = thresholds(task, found)
    assert [(panel.value, panel.label) for panel in row.panels] == [
        ("71.3", "Full: at best 71.3 at threshold 3.0"),
        ("55.5", "Scratch: at best 55.5 without any answer"),
    ]
    assert "F1 by the threshold" in row.note
    assert "optimistic" in row.note
    found["scratch"] = found["scratch"].model_copy(update={"threshold_curve": {}})
    assert thresholds(task, found) == [], "it never abstains"
    steps = [*map(float, range(40)), 1e6]
    of_many = {"threshold": steps, "f1": [50.0] * 41, "exact_match": [0.0] * 41}
    (row,) = thresholds(task, {name: AnswerBreakdown(**counts, threshold_curve=of_many) for name in found})
    drawn = "".join(row.panels[0].drawn)
    assert ">38</text>" in drawn, "0 to 38: one threshold far away does not stretch the axis"
    assert "1,000,000" not in drawn
    assert re.findall(r'y="100%" dy="16"[^>]*>([^<]+)<', drawn) == ["0", "38"], "−1 would lie on 0"
    rising = {"threshold": [*steps[:40], 60.0], "f1": [*steps[:40], 60.0], "exact_match": [0.0] * 41}
    (row,) = thresholds(task, {name: AnswerBreakdown(**counts, threshold_curve=rising) for name in found})
    assert ">60</text>" in "".join(row.panels[0].drawn), "the axis reaches the best threshold"


@pytest.mark.parametrize(
    ("best", "threshold", "seeds", "said"),
    [
        (61.2, 1.5, 1, "at best 61.2 at threshold 1.5"),  # between the points of the curve
        (40.0, 0.0, 1, "at best 40.0 without any answer"),  # 0 in SQuAD's script
        (60.0, 0.0, 1, "at best 60.0 at threshold 0.0"),
        (61.2, 1.5, 2, "at best 60.0 at threshold 0.0"),  # one threshold for both seeds
    ],
)
def test_the_best_score_of_one_seed_is_the_same_in_the_plot_and_in_the_table(
    best: float, threshold: float, seeds: int, said: str
) -> None:
    curve = {"threshold": [-2.0, 0.0, 3.0], "f1": [40.0, min(best, 60.0), 50.0], "exact_match": [0.0, 0.0, 0.0]}
    figures = {"f1": 60.0, "best_f1": best, "best_f1_thresh": threshold, "total": 10, "NoAns_total": 4}
    found = AnswerBreakdown(answered=6.0, answerable=6, questions=10, threshold_curve=curve)
    seed = {"epoch": 1, "figures": figures, "intervals": {}, "before": {}}
    method = method_of(figures, {str(number): seed for number in range(seeds)}, {}, {})
    of = {"headlines": ["f1"], "legend": {"f1": Figure("percentage", "higher", "F1")}, "comparisons": [],
          "baselines": {}, "methods": {"full": method}}  # fmt: skip
    task = TaskResults("squad", "question_answering", Details.from_json({"squad": of}).tasks["squad"], {"full": 0})
    (row,) = thresholds(task, {"full": found})
    assert row.panels[0].label == f"Full: {said}"


@pytest.mark.parametrize(
    ("thresholds", "best", "said"),
    [([0.0, 0.0], 40.0, "–"), ([0.0, 1.0], 45.0, "–"), ([0.0, 1.0], 50.0, "0.5000 ± 0.7000")],
)
def test_the_threshold_above_which_nothing_is_answered_is_not_0(
    thresholds: list[float], best: float, said: str
) -> None:
    """4 of 10 questions have no answer, so 40 is the score of none. Two seeds, of which the second has 50 at 1."""
    name, counts = "best_f1_thresh", {"total": 10, "NoAns_total": 4}
    scores = [2 * best - 50 if thresholds[1] else best, 50.0 if thresholds[1] else best]
    seeds = {str(n): {"epoch": 1, "before": {}, "intervals": {}, "figures": counts | {"best_f1": scores[n], name: at}}
             for n, at in enumerate(thresholds)}  # fmt: skip
    means = counts | {"best_f1": best, name: sum(thresholds) / 2}
    method = method_of(means, seeds, {}, {name: 0.7})
    legend = {name: Figure("score", "neither", "threshold"), "best_f1": Figure("percentage", "higher", "F1")}
    of = {"headlines": ["best_f1"], "legend": legend, "comparisons": [], "baselines": {}, "methods": {"full": method}}
    task = TaskResults("squad", "question_answering", Details.from_json({"squad": of}).tasks["squad"], {"full": 0})
    assert f"| threshold |  | – | {said} |" in as_markdown("T", [task_section(task, ["squad"])])


def test_in_the_learning_curve_too_the_threshold_above_which_nothing_is_answered_is_not_0() -> None:
    """4 of 10 questions have no answer: before training none is answered; after it, those up to 0 and up to 1.5."""
    legend = {"best_f1": Figure("percentage", "higher"), "best_f1_thresh": Figure("score", "neither")}
    counts = {"method": "full", "seed": "1", "total": 10, "NoAns_total": 4}
    curve = pd.DataFrame([counts | {"epoch": epoch, "best_f1": best, "best_f1_thresh": at}
                          for epoch, (best, at) in enumerate(((40.0, 0.0), (60.0, 0.0), (70.0, 1.5)))])  # fmt: skip
    page = as_markdown("T", [Section("S", task_folds(_task(curve, {"legend": DETAILS.legend | legend})))])
    shown = re.findall(r"^\| Full \| 1 \| 10 \| 4 \| (.*) \|$", page, re.MULTILINE)
    assert shown == ["0 | 40.0 | –", "1 | 60.0 | 0.0000", "2 | 70.0 | 1.5000"]


def test_a_count_that_never_changes_has_no_column_in_the_learning_curve() -> None:
    """The number of questions; that of the words in all answers changes from epoch to epoch."""
    legend = DETAILS.legend | {name: Figure("count", "neither", name) for name in ("questions", "words")}
    curve = CURVE.assign(questions=10, words=[7, 9])
    page = as_markdown("T", [Section("S", task_folds(_task(curve, {"legend": legend})))])
    header, *rows = re.findall(r"^\| (?:method|Full) \| (?:seed|1) \| (.*) \|$", page, re.MULTILINE)
    assert header == "training loss, nats | validation loss, nats | accuracy, % | epoch | updates | words"
    assert rows == ["– | 0.7000 | 51.0 | 0 | 0 | 7", "– | 0.7000 | 51.0 | 1 | 10 | 9"]


def test_some_of_very_many_examples_are_kept_with_their_predictions(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first, third and fifth of seven; on these, the second seed is right where the first is not."""
    monkeypatch.setattr(browser, "MOST", 3)
    right, f1 = ["0111011", "1000100"], [0.1, 1, 0.6, 1, 0.2, 1, 1]
    asked, passages = ([f"{what} {number}" for number in range(7)] for what in ("question", "passage"))
    said, sure = [f"a{number}" for number in range(7)], [number - 2.25 for number in range(7)]
    full = Opinion(said, right, [*sure[:4], math.nan, *sure[5:]], [-1, 0, 1, 2, 3, 4, 5], f1)
    golds, spans = [("a",)] * 7, [[(number, 1)] for number in range(7)]
    found = _packed(Predictions(_task(), asked, golds, {"Full": full}, (), passages, spans))
    assert (found["number"], found["text"]) == ([1, 3, 5], ["question 0", "question 2", "question 4"])
    assert [found["passages"][number] for number in found["passage"]] == ["passage 0", "passage 2", "passage 4"]
    assert found["gold"] == [[(0, 1)], [(2, 1)], [(4, 1)]]
    assert found["methods"] == [{
        "name": "Full", "baseline": False, "right": ["010", "101"], "sure": [-22, -2, None], "start": [-1, 1, 3],
        "length": [2, 2, 2], "other": {0: "a0"}, "f1": [10, 60, 20],
    }]  # fmt: skip


@pytest.mark.usefixtures("here")
def test_the_data_page_has_the_cards_of_running_text_and_listed_tasks() -> None:
    sst2 = {"parts": {"train": {"examples": 1200}}, "shared": {"dev in train": 0}, "findings": [], "origin": {}}
    parts = {"dev": {"examples": 1500, "classes": {"examples": 900, "world_news": 600}}}
    news = {"parts": parts, "findings": ["dev is odd"]}
    text = {"parts": {"train": {"documents": 9, "words": 68_735}}, "findings": ["it is short"]}
    for name, card in (("classification/sst2", sst2), ("classification/news", news), ("text", text)):
        write_json(Path("data", name, "card.json"), card)
    grid = {"tasks": ["sst2", "news"], "methods": ["full"], "squad_methods": [], "seeds": [1]}
    page = as_markdown("T", [Section("S", [data_fold({"finetune": grid})])])
    assert "68,735 words of running text to train on; 2 findings" in page
    assert all(f"Note: {finding}." in page for finding in ("text: it is short", "news: dev is odd"))
    assert "68,735" not in as_markdown("T", [Section("S", [data_fold({"finetune": grid}, text=False)])])
    assert [line for line in page.split("\n") if "| sst2 |" in line or "| news |" in line] == [
        "| sst2 | train | examples | 1,200 |",
        "| news | dev | examples | 1,500 |",
        "| news | dev | examples | 900 |",  # a class of this name
        r"| news | dev | world\_news | 600 |",
    ]


UNITS = {"perplexity_per_token": 9.0, "perplexity_per_word": 20.0, "bits_per_byte": 1.0}
ROW = {"epoch": 1, "updates": 10, "training_loss": 3.0, "validation_loss": 2.2, "perplexity": 9.03}


def _perplexity_page(
    *rows: dict[str, float], flags: Mapping[str, str] | None = None, form: Any = as_markdown, updates: int = 2,
    kind: str = "masked", **measures: object,
) -> Any:  # fmt: skip
    """What `form` makes of the section of epochs that differ from ROW in these values."""
    found = {kind: UNITS, "unigram": UNITS} | measures
    report = PerplexityReport.from_json({"valid": found | {"beats_unigram": True, "flags": flags or {}}})
    losses = pd.DataFrame({"update": [1, updates], "training_loss": [4.0, 3.0]})
    record = RUN.model_copy(update={"updates": updates, "tokens": 2000})
    return form("T", [pretraining_section(report, pd.DataFrame([ROW | row for row in rows]), losses, record)])


def test_next_sentences_are_no_part_of_a_perplexity_and_a_model_that_tells_none_apart_is_flagged() -> None:
    pairs: list[dict[str, float]] = [{}, {"next_sentence_accuracy": 0.51}, {"next_sentence_accuracy": 0.93}]
    plain, poor, good = map(_perplexity_page, pairs)
    assert "next-sentence" not in plain
    assert "| 93.0 |" in good
    assert ["training loss, with that of the pairs, nats" in page for page in (plain, good)] == [False, True]
    assert ["next-sentence prediction is at chance" in page for page in (plain, poor, good)] == [False, True, False]
    drawn = ["training loss 4.00, perplexity 55" in _perplexity_page(row, form=as_html) for row in pairs]
    assert drawn == [True, False, False], "the training loss has that of the pairs in it"


def test_epochs_are_counted() -> None:
    """There is one row where pretraining passes a checkpoint on."""
    assert "Losses by epoch: 1 row<" in _perplexity_page({})
    assert "Losses by epoch: 2 rows<" in _perplexity_page({}, {"epoch": 2})


def test_the_training_of_a_causal_model_masks_nothing() -> None:
    assert "masking" in _perplexity_page({})
    page = _perplexity_page({}, kind="causal")
    assert "masking" not in page
    assert "Line: training." in page


def test_the_model_fold_says_what_training_started_from() -> None:
    for facts, said in (
        ({"from": None}, "Training started from random weights."),
        ({"from": "org/name@0123", "license": "mit"}, "started from the weights of org/name@0123 (licence: mit)."),
        ({"from": "a/b@0", "license": ["mit", "cc0-1.0"]}, "the weights of a/b@0 (licence: mit, cc0-1.0)."),
        ({"from": "folder@0123", "commit": None}, "Training started from the weights of folder@0123."),
        ({"from": "a/b@0", "license": "other", "license_name": "llama3"}, "the weights of a/b@0 (licence: llama3)."),
        ({"from": "a/b@0", "random": True}, "Training started from random weights of the sizes of a/b@0."),
        ({"from": "a/b@0", "random": 0}, "Training started from random weights of the sizes of a/b@0."),
    ):
        assert said in as_markdown("T", [Section("S", models_folds({"": (facts, {"a": 1})}, {}))])


def test_parameters_are_summed_and_the_largest_memory_of_all_runs_is_named() -> None:
    runs = {"pretrain": RUN, "sst2 full 1": RUN.model_copy(update={"peak_memory_mib": 1300})}
    folds = models_folds({"": ({"from": None}, {"body": 750, "head": 250})}, runs)
    page = as_markdown("T", [Section("S", folds)])
    for line in ("| body | 750 | 75.0 |", "| head | 250 | 25.0 |", "| total | 1,000 | 100.0 |"):
        assert line in page
    assert "2 runs, at most 1,300 MiB" in page


def test_perplexities_have_intervals_where_there_are_some() -> None:
    interval = {name: {"low": 0.5, "high": 1234.5} for name in UNITS}
    page = _perplexity_page({}, masked={**UNITS, "intervals": interval})
    assert "| valid | 9.00 (0.50 – 1,234.50) | 20.00 (0.50 – 1,234.50) | 1.000 (0.500 – 1,234.500) |" in page
    assert "| unigram baseline | valid | 9.00 | 20.00 | 1.000 |" in page
    assert ABSENT not in page
    assert "Dashed: a unigram model" in page


def test_a_perplexity_that_is_absent_or_huge_is_shown_as_such() -> None:
    interval = {"perplexity_per_token": {"low": 8.0, "high": 10.0}, "perplexity_per_word": {"low": 2.5e9, "high": None}}
    huge = {"perplexity_per_token": 9.0, "perplexity_per_word": 1.25e300, "bits_per_byte": None, "intervals": interval}
    page = _perplexity_page({"perplexity": math.nan}, masked=huge, unigram=dict.fromkeys(UNITS))
    assert "| masked, fixed masks | valid | 9.00 (8.00 – 10.00) | 1.25e+300 (2.50e+09 – –) | – |" in page
    assert "| unigram baseline | valid | – | – | – |" in page
    assert "–: too large for a float" in page
    assert "Dashed" not in page


@pytest.mark.parametrize(
    ("loss", "labels"),
    [(4.0, ["10", "30"]),
     (15.0, ["10", "30", "100", "300", "1,000", "3,000", "10,000", "30,000", "100,000", "300,000", "1e+6", "3e+6"]),
     (250.0, [f"1e+{power}" for power in (12, 24, 36, 48, 60, 72, 84, 96, 108)])],
)  # fmt: skip
def test_a_perplexity_of_any_size_stands_beside_an_axis_that_can_be_read(loss: float, labels: list[str]) -> None:
    """e^250 is above 10^108, so every twelfth power of ten has a label: nine in all."""
    (section,) = _perplexity_page({}, {"validation_loss": loss, "epoch": 2}, form=lambda _, sections: sections)
    (figure,) = (of for of in section.blocks if isinstance(of, Panels))
    assert re.findall(r'dx="-6"[^>]*>([^<]+)<', svg.joined(figure.panels[0].drawn)) == labels


def test_a_perplexity_that_is_too_large_for_a_float_is_printed_as_above_the_largest() -> None:
    """As of a model that diverged, by 705 nats per token; e^700 is 1.01 · 10^304."""
    short = Shortfall(LIKELIHOOD, -705.0, "unigram", -5.0, -710.0, -690.0)
    valid = {"masked": UNITS, "unigram": UNITS, "beats_unigram": False, "flags": {"not_above_unigram": short}}
    (line,) = flag_lines(perplexity_flags(PerplexityReport.from_json({"valid": valid})))
    ratio = "1.01e+304 times as high (95% interval 4.60e+299 to >1.01e+304)"
    assert line.endswith(f": perplexity per token >1.01e+304, a unigram model’s 148.4; {ratio}")
    (section,) = _perplexity_page({}, {"validation_loss": 705.0, "epoch": 2}, form=lambda _, sections: sections)
    (figure,) = (of for of in section.blocks if isinstance(of, Panels))
    assert figure.panels[0].label == "Perplexity of the validation text: 9.0, >1.01e+304"


def test_a_model_no_better_than_word_frequencies_is_a_warning_with_its_evidence() -> None:
    page = _perplexity_page({}, flags={"not_above_unigram": "a likelihood"})
    assert "Warning: language model, validation text: not above a unigram model: a likelihood." in page


PLACES = {"full": 0, "scratch": 1, "lora": 2, "adapter": 3}
ACCURACY = Figure("fraction", "higher", "accuracy")


def _compared(
    means: Mapping[str, float], pairs: Sequence[tuple[str, str, float, str]] = (), seeds: int = 2, name: str = "sst2",
    baseline: float = 0.5, figure: Figure = ACCURACY,
) -> TaskResults:  # fmt: skip
    """Methods by their mean accuracy, with intervals of 0.02 to both sides; pairs have a difference and a verdict.

    So have the differences to baselines: TF-IDF with an accuracy of `baseline`, and a worse one.
    """

    def around(value: float) -> dict[str, float]:
        return {"low": value - 0.02, "high": value + 0.02}

    baselines, methods = {"majority": baseline - 0.1, "tfidf": baseline}, {}
    for method, mean in means.items():
        of = {"figures": {"accuracy": mean}, "intervals": {"accuracy": around(mean)}}
        seed = of | {"epoch": 1, "before": {}}
        ahead = {name: around(mean - value) for name, value in baselines.items()}
        methods[method] = method_of(seeds={str(n): seed for n in range(seeds)}, std={}, **of) | {"ahead": ahead}
    details = Details.from_json({name: {
        "headlines": ["accuracy"], "legend": {"accuracy": figure}, "methods": methods,
        "baselines": {name: {"figures": {"accuracy": value}, "intervals": {}} for name, value in baselines.items()},
        "comparisons": [
            Comparison("accuracy", one, other, "methods", value, value - 0.02, value + 0.02, "t", 0.1, 0.1, found, 0.1)
            for one, other, value, found in pairs
        ],
    }})  # fmt: skip
    return TaskResults(name, "classification", details.tasks[name], PLACES)


def _said(*tasks: TaskResults, perplexity: PerplexityReport | None = None, **shares: float) -> list[str]:
    return [sentence.replace("**", "") for sentence in summary.verdict(tasks, perplexity, shares)]


def test_pretraining_is_worth_the_difference_to_random_weights() -> None:
    first = _compared({"full": 0.9, "scratch": 0.7}, [("full", "scratch", 0.2, "full")])
    second = _compared({"full": 0.8, "scratch": 0.7}, [("scratch", "full", -0.1, "full")], name="news")
    assert _said(first, second)[0] == (
        "Pretraining is worth +20.0 points of accuracy on reviews (90.0 against 70.0 from scratch) and +10.0 points of "
        "accuracy on news texts (80.0 against 70.0 from scratch)."
    )


def test_a_difference_that_is_shown_is_not_printed_as_0() -> None:
    """By 0.04 points, of which one digit would print 0.0 beside an interval above 0 and the method that is better."""
    task = _compared({"full": 0.9004, "scratch": 0.9}, [("full", "scratch", 0.0004, "full")])
    said = "Pretraining is worth +0.04 points of accuracy on reviews (90.0 against 90.0 from scratch)."
    assert _said(task)[0] == said
    pair = replace(PAIR, difference=0.0004, low=0.0003, high=0.02, verdict="full")
    assert "| +0.04 | +0.03 to +2.0 | exact McNemar | 0.2000 | Full |" in _scores_page({"comparisons": [pair]})


def test_the_verdict_on_a_test_set_says_so() -> None:
    """The table below it has the scores on the validation set too."""
    task = _compared({"full": 0.9, "scratch": 0.7}, [("full", "scratch", 0.2, "full")], name="sst2-test", baseline=0.95)
    assert _said(task) == [
        "Pretraining is worth +20.0 points of accuracy on reviews of the test set (90.0 against 70.0 from scratch).",
        "Worse than a baseline: Full on reviews of the test set (TF-IDF); Scratch on reviews of the test set (majority "
        "class and TF-IDF).",
    ]


def test_pretraining_shows_no_significant_gain_where_methods_tie() -> None:
    nothing = "shows no significant gain for full fine-tuning on reviews"
    for value, found, said in (
        (0.01, "tie", f"{nothing} (+1.0 points, 95% interval −1.0 to +3.0)"),
        # Its interval is above 0, and would contradict.
        (0.2, "no difference shown", f"{nothing} (+20.0 points)"),
        (-0.2, "scratch", "makes full fine-tuning worse on reviews (−20.0 points, 95% interval −22.0 to −18.0)"),
        (-0.0203, "scratch", "makes full fine-tuning worse on reviews (−2.0 points, 95% interval −4.0 to −0.03)"),
        # Its interval includes 0, and would contradict.
        (-0.01, "scratch", "makes full fine-tuning worse on reviews (−1.0 points)"),
    ):
        task = _compared({"full": 0.7 + value, "scratch": 0.7}, [("full", "scratch", value, found)])
        assert _said(task)[0] == f"Pretraining {said}."


def test_the_better_of_the_cheap_methods_stands_against_full_fine_tuning() -> None:
    pairs = [("lora", "full", 0.01, "tie"), ("full", "adapter", 0.05, "full")]
    task = _compared({"full": 0.9, "lora": 0.91, "adapter": 0.85}, pairs)
    said = "{} of the weights; against full fine-tuning it scores {} on reviews{}."
    assert said.format("LoRA trains 9.9%", "+1.0 points", " (a tie)") in _said(task, lora=9.88, adapter=5.0)
    assert said.format("Adapter trains 5.0%", "−5.0 points", "") in _said(task, adapter=5.0)
    assert said.format("Adapter trains <0.001%", "−5.0 points", "") in _said(task, adapter=0.00033)
    assert not any("trains" in sentence for sentence in _said(task))
    elsewhere = _compared({"full": 0.8}, name="news")
    assert not any("trains" in sentence for sentence in _said(task, elsewhere, lora=9.88)), "LoRA was run on one only"
    whole = _compared({"full": 0.9, "scratch": 0.7}, [("full", "scratch", 0.2, "full")])
    assert not any("trains" in sentence for sentence in _said(whole, full=100.0, scratch=100.0))


def test_a_method_that_trains_more_on_one_task_than_on_another_trains_at_most_that_share() -> None:
    """As the adapters of params.yaml do, whose bottlenecks are wider on questions."""
    runs = {f"{task} adapter 1": RUN.model_copy(update={"parameters": 100, "trained_parameters": trained})
            for task, trained in (("sst2", 8), ("squad", 20))}  # fmt: skip
    pairs = [("full", "adapter", 0.05, "full")]
    tasks = [_compared({"full": 0.9, "adapter": 0.85}, pairs, name=name) for name in ("sst2", "news")]
    said = "Adapter trains at most **20.0% of the weights**; against full fine-tuning it scores −5.0 points on reviews"
    assert any(sentence.startswith(said) for sentence in summary.verdict(tasks, None, shares_of(runs)))
    assert "Weights trained: the largest share over these tasks." in summary.reading(tasks)
    assert "over these tasks" not in summary.reading(tasks[:1])


def test_a_method_of_another_model_is_not_set_against_full_fine_tuning() -> None:
    methods = {"full": {}, "lora": None, "bert-lora": {"method": "lora", "checkpoint": "bert"}}
    shares = {"full": 100.0, "lora": 9.0, "bert-lora": 0.3}
    assert summary.same_start_as_full(shares, methods) == {"full": 100.0, "lora": 9.0}


def test_a_model_of_other_sizes_from_scratch_does_not_tell_what_pretraining_is_worth() -> None:
    task = _compared({"full": 0.9, "scratch": 0.7}, [("full", "scratch", 0.2, "full")])
    for checkpoint, is_said in ((None, False), ("bert", True)):
        methods = {"full": {"checkpoint": "bert"}, "scratch": {"checkpoint": checkpoint}}
        shares = summary.same_start_as_full({"full": 100.0, "scratch": 100.0}, methods)
        found = summary.verdict([task], None, shares)
        assert any(said.startswith("Pretraining is worth") for said in found) == is_said


def test_a_correlation_counts_as_much_as_a_share_of_100() -> None:
    """The adapter gains half a point on reviews, and on the other task nearly all is lost."""
    reviews, cola = {"full": 0.8, "lora": 0.79, "adapter": 0.805}, {"full": 0.9, "lora": 0.88, "adapter": 0.2}
    pairs = [(method, "full", 0.0, "tie") for method in ("lora", "adapter")]
    matthews = Figure("correlation", "higher", "matthews")
    tasks = [_compared(reviews, pairs), _compared(cola, pairs, name="cola", figure=matthews)]
    assert any(sentence.startswith("LoRA trains") for sentence in _said(*tasks, lora=9.88, adapter=5.0))
    table = summary.summary_table(tasks, {}, {})
    assert [getattr(row[0], "text", row[0]) for row in table.rows][:3] == ["Full", "LoRA", "Adapter"]


def test_methods_that_are_not_above_a_baseline_are_named() -> None:
    weak = _compared({"full": 0.9, "scratch": 0.49, "lora": 0.485, "adapter": 0.4})
    worse = "Worse than a baseline: Adapter on reviews (TF-IDF)"
    said = "Scratch and LoRA on reviews (TF-IDF); Adapter on reviews (majority class)"
    assert f"{worse}. No better than a baseline: {said}." in _said(weak)
    none = _compared({"full": 0.49, "lora": 0.49}, name="news")
    assert f"{worse}. No better than a baseline: {said}; all methods on news texts (TF-IDF)." in _said(weak, none)
    alone = _compared({"full": 0.49}, name="news")
    assert "No better than a baseline: Full on news texts (TF-IDF)." in _said(alone)
    full = _compared({"full": 0.9})
    assert "Every method beats every baseline." in _said(full)
    alone = _compared({"full": 0.4}, name="news")
    alone.details.baselines.clear()
    assert "Every method beats every baseline on reviews." in _said(full, alone)


def test_a_baseline_that_is_not_beaten_is_named_where_the_best_one_is() -> None:
    task = _compared({"full": 0.9})
    task.details.methods["full"].ahead["majority"] = {"low": -0.01, "high": 1.01}
    said = "Better than a baseline, but not significantly with 2 seeds: "
    assert f"{said}Full on reviews (majority class)." in _said(task)


def test_only_a_method_that_does_not_score_higher_is_called_no_better() -> None:
    means = {"full": 0.9, "scratch": 0.51, "lora": 0.49}
    low, open_ = "No better than a baseline:", "Better than a baseline, but not significantly with 2 seeds:"
    said = f"{low} LoRA on reviews (TF-IDF). {open_} Scratch on reviews (TF-IDF)."
    assert said in _said(_compared(means))


def test_where_the_lowest_is_best_a_lower_score_is_a_gain() -> None:
    figure = Figure("fraction", "lower", "calibration error")
    task = _compared({"full": 0.1, "scratch": 0.4}, [("full", "scratch", -0.3, "full")], baseline=0.3, figure=figure)
    assert task.methods == ["full", "scratch"]
    assert _said(task)[:2] == [
        "Pretraining is worth −30.0 points of calibration error on reviews (10.0 against 40.0 from scratch).",
        "Worse than a baseline: Scratch on reviews (majority class and TF-IDF).",
    ]
    assert re.findall(r"[:;] ([^:;(]+) [\d.]+ \(", summary.ranked(task).label) == [
        "Full", "majority class", "TF-IDF", "Scratch"
    ]  # fmt: skip
    assert [str(row[0]) for row in summary.summary_table([task], {}, {}).rows[:2]] == ["Full", "Scratch"]
    pairs = [("lora", "full", 0.02, "full"), ("adapter", "full", 0.1, "full")]
    cheap = _compared({"full": 0.1, "lora": 0.12, "adapter": 0.2}, pairs, figure=figure)
    said = "LoRA trains 9.0% of the weights; against full fine-tuning it scores +2.0 points on reviews."
    assert said in _said(cheap, lora=9.0, adapter=9.0)
    (row,) = learning(replace(_compared({"full": 0.1}, figure=figure), curve=CURVE), "accuracy")
    assert row.note.endswith("Dashed: the best baseline (majority class, 40.0).")


def test_where_the_lowest_is_best_a_baseline_within_the_interval_is_not_beaten() -> None:
    """By 0.01 of calibration error, with an interval from 0.03 below the baseline to 0.01 above it."""
    task = _compared({"full": 0.29}, baseline=0.3, figure=Figure("fraction", "lower", "calibration error"))
    assert task.against("full", "tfidf") == "uncertain"
    assert _said(task)[0].startswith(
        "Worse than a baseline: Full on reviews (majority class). Better than a baseline, "
    )


def test_a_difference_has_the_lower_end_of_its_interval_first_whichever_method_was_named_first() -> None:
    task = _compared({"full": 0.9, "lora": 0.85}, [("full", "lora", 0.05, "full")])
    ends = {pair: difference.ends for pair in (("full", "lora"), ("lora", "full"))
            if (difference := task.difference(*pair)) is not None}  # fmt: skip
    assert ends == {("full", "lora"): ("+3.0", "+7.0"), ("lora", "full"): ("−7.0", "−3.0")}
    tie = _compared({"full": 0.69, "scratch": 0.7}, [("scratch", "full", 0.01, "tie")])
    said = "Pretraining shows no significant gain for full fine-tuning on reviews"
    assert _said(tie)[0] == f"{said} (−1.0 points, 95% interval −3.0 to +1.0)."


def test_a_run_is_judged_by_its_test_sets_and_by_validation_only_where_there_is_none() -> None:
    valid, test, other = (_compared({"full": 0.9}, name=name) for name in ("sst2", "sst2-test", "news"))
    assert judged([valid, test, other, _compared({}, name="mood")]) == [test, other]


def test_the_best_method_and_those_that_tie_with_it_are_bold() -> None:
    pairs = [("full", "lora", 0.01, "tie"), ("full", "scratch", 0.2, "full"), ("lora", "scratch", 0.19, "lora")]
    rows = summary.summary_table([_compared({"full": 0.9, "lora": 0.89, "scratch": 0.7}, pairs)], {}, {}).rows[:3]
    shown = [row[2] for row in rows]
    assert [(str(cell), cell.bold) for cell in shown if isinstance(cell, TableCell)] == [
        ("90.0", True), ("89.0 ≈", True), ("70.0", False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("figure", "shown"),
    [(ACCURACY, "1.23"), (Figure("percentage", "higher", "F1"), "0.01"), (Figure("correlation", "higher"), "0.0123")],
)
def test_a_deviation_over_seeds_has_the_scale_of_its_figure_and_at_least_two_digits(figure: Figure, shown: str) -> None:
    task = _compared({"full": 0.9}, figure=figure)
    task.details.methods["full"] = task.details.methods["full"].model_copy(update={"std": {"accuracy": 0.01234}})
    table = summary.summary_table([task], {}, {})
    assert [*table.header][2:5] == ["mean", "95% interval", "sd"]
    assert table.rows[0][4] == shown


def test_what_the_methods_of_the_table_train_is_said_below_it() -> None:
    """A method of one's own has no sentence."""
    said = summary.reading([_compared({"full": 0.9, "scratch": 0.7}), _compared({"full": 0.9, "mine": 0.8})])
    start = "all weights are trained, starting from"
    assert said.endswith(f"over these tasks. Full: {start} the pretrained ones. Scratch: {start} random ones.")
    assert {*summary.TRAINED} <= {*plugin_names("retrace.methods")}


@pytest.mark.parametrize(("seeds", "said"), [(1, "alone, summed"), (3, "alone, the mean over seeds, summed")])
def test_a_time_of_several_seeds_is_said_to_be_their_mean(seeds: int, said: str) -> None:
    """Below, the stages' times are sums over seeds."""
    assert f"Time: of fine-tuning {said} over" in summary.reading([_compared({"full": 0.9}, seeds=seeds)])


def test_the_largest_number_of_seeds_decides_what_a_table_shows() -> None:
    """A method that is no longer listed may have fewer."""
    task = _compared({"full": 0.9, "lora": 0.8}, seeds=3)
    del task.details.methods["lora"].seeds["2"]
    assert (most_seeds([task]), most_seeds([])) == (3, 0)


def test_figures_have_the_digits_of_their_scale() -> None:
    figure = Figure("correlation", "higher", "Matthews correlation")
    task = _compared({"full": 0.6346, "scratch": 0.5824}, [("full", "scratch", 0.0522, "full")], figure=figure)
    said = "Pretraining is worth +0.0522 of Matthews correlation on reviews (0.6346 against 0.5824 from scratch)."
    assert _said(task)[0] == said
    first, *_ = summary.summary_table([task], {}, {}).rows
    assert [str(cell) for cell in first[2:4]] == ["0.6346", "0.6146 – 0.6546"]
    assert task.score("full").said == "0.6346 (95% interval 0.6146 to 0.6546)"


def test_the_perplexity_stands_beside_a_unigram_models() -> None:
    for own, beats, said in (
        (6.17, True, "6.2 per token; a unigram model’s is 163.4."),
        (170.0, False, "170.0 per token; a unigram model’s is 163.4, which it does not beat."),
        (150.0, False, "150.0 per token; a unigram model’s is 163.4, which it does not beat significantly."),
        (6.17, None, "6.2 per token; a unigram model’s is 163.4."),
        (None, False, "too large for a float."),
    ):
        masked, unigram = (UNITS | {"perplexity_per_token": value} for value in (own, 163.4))
        for kind in ("masked", "causal"):
            valid = {kind: masked, "unigram": unigram, "beats_unigram": beats, "flags": {}}
            report = PerplexityReport.from_json({"valid": valid})
            assert _said(perplexity=report) == [f"The language model’s perplexity is {said}"]
            other = {"masked": UNITS, "unigram": UNITS, "beats_unigram": True, "flags": {}}
            report = PerplexityReport.from_json({"valid": valid, "test": other})
            assert _said(perplexity=report) == [f"The language model’s perplexity is {said}"], "of the validation text"
    absent = {"masked": dict.fromkeys(UNITS), "unigram": dict.fromkeys(UNITS), "beats_unigram": None}
    report = PerplexityReport.from_json({"valid": absent | {"flags": {"nothing_scored": "no token"}}})
    assert _said(perplexity=report) == ["The language model’s perplexity is not defined on this text."]
    assert _said() == []


def test_what_is_on_a_test_set_of_further_questions_is_called_questions() -> None:
    grid = {"tasks": ["sst2"], "methods": ["full"], "questions": ["news"], "squad_methods": ["full"], "seeds": [1]}
    task = {"headlines": [], "legend": {}, "baselines": {}, "methods": {}, "comparisons": []}
    (found,) = read_tasks(Details.from_json({"news-test": task}), {"finetune": grid}, with_curves=False)
    assert (found.kind, found.noun) == ("question_answering", "news questions")


def test_a_score_stands_clear_of_a_dot_at_the_end_of_the_axis_and_within_the_margin() -> None:
    panel = summary.ranked(_compared({"full": 1.0}))
    (shift,) = re.findall(r'<text x="100%"[^>]* dx="(\d+)"[^>]*>100.0</text>', svg.joined(panel.drawn))
    widest, radius = 8 * len("100.0"), 3.5  # px
    assert radius + 4 < int(shift) - widest
    (right,) = re.findall(r"plot\.rank \{ padding: 0 (\d+)px", (Path(page.__file__).parent / "page.css").read_text())
    assert int(shift) < int(right) == page.MARGINS["rank"][1]


def test_long_names_lose_their_middle_beside_a_plot_and_are_whole_in_its_tooltip() -> None:
    names = [f"roberta-base-adapter-{rank}" for rank in (16, 32)]
    task = replace(_compared({names[0]: 0.9, names[1]: 0.8}), places={name: place for place, name in enumerate(names)})
    drawn = svg.joined(summary.ranked(task).drawn)
    assert re.findall(r'<text x="-110"[^>]*>([^<]+)<', drawn)[:2] == ["Roberta…ter-16", "Roberta…ter-32"]
    assert re.findall(r'data-t="([\w-]+):', drawn)[:2] == [name.capitalize() for name in names]


def test_a_seed_outside_the_interval_of_the_mean_lies_on_the_axis() -> None:
    """As when one of five seeds fails: Student's interval reaches 1.24 standard deviations, a seed up to 1.79."""
    task = _compared({"full": 0.9}, seeds=5)
    task.details.methods["full"].seeds["0"].figures["accuracy"] = 0.08
    drawn = svg.joined(summary.ranked(task).drawn)
    ticks = re.findall(r'<line x1="([\d.]+)%"[^>]*class="seed"', drawn)
    assert [float(tick) for tick in ticks] == [8.0, 90.0, 90.0, 90.0, 90.0], "on an axis from 0 to 100"


@pytest.mark.parametrize(("lora", "listed"), [(0.95, ["LoRA", "Full", "Scratch"]), (0.88, ["Full", "LoRA", "Scratch"])])
def test_a_method_of_one_task_is_listed_by_its_score_there(lora: float, listed: list[str]) -> None:
    """LoRA was spared the hard task: it is first only where it scores higher than full fine-tuning on the other."""
    hard = _compared({"full": 0.8, "scratch": 0.7}, name="news")
    tasks = [_compared({"full": 0.9, "scratch": 0.7, "lora": lora}), hard]
    rows = summary.summary_table(tasks, {"lora": 0.034, "full": 100.0}, {}).rows[:3]
    assert [str(row[0]) for row in rows] == listed
    assert {str(row[0]): row[1] for row in rows} == {"Full": "100.0", "LoRA": "0.034", "Scratch": "–"}


def test_a_method_of_two_tasks_is_listed_by_how_far_it_is_behind_on_average() -> None:
    """Three points on each of two tasks are fewer than four on one."""
    tasks = [_compared({"full": 0.9, "scratch": 0.87, "lora": 0.86}), _compared({"full": 0.8, "scratch": 0.77})]
    rows = summary.summary_table(tasks, {}, {}).rows[:3]
    assert [str(row[0]) for row in rows] == ["Full", "Scratch", "LoRA"]


def test_methods_are_listed_by_their_distance_on_test_sets_where_there_are_some() -> None:
    validation = _compared({"full": 0.9, "scratch": 0.8})
    test = _compared({"full": 0.8, "scratch": 0.85}, name="sst2-test")
    rows = summary.summary_table([validation, test], {}, {}).rows[:2]
    assert [str(row[0]) for row in rows] == ["Scratch", "Full"]


def test_whether_sentences_are_told_apart_is_that_of_the_last_epoch() -> None:
    for shares, is_said in (((0.5, 0.93), False), ((0.93, 0.5), True)):
        rows = [{"epoch": n, "updates": 10 * n, "next_sentence_accuracy": of} for n, of in enumerate(shares, 1)]
        assert ("next-sentence prediction is at chance" in _perplexity_page(*rows, updates=20)) == is_said


def test_perplexity_by_epoch_begins_after_the_first_and_has_no_point_where_it_is_too_large() -> None:
    curve = pd.DataFrame({"epoch": [0, 1, 2, 3], "perplexity": [5000.0, 30.0, math.nan, 9.0]})
    (figure,) = perplexity_by_epoch(curve)
    assert figure.panels[0].label == "Perplexity by epoch, 30.00, 9.00"
    assert re.findall(r"epoch (\d): ([\d.]+)", page.picture(figure)) == [("1", "30.00"), ("3", "9.00")]
    assert perplexity_by_epoch(curve.head(1)) == []


def test_validation_stands_where_its_epoch_ended() -> None:
    """The last of three epochs was cut short: four of ten updates in each of the first two, two in the last."""
    rows = [{"epoch": n, "updates": at, "validation_loss": 4.0 - n / 2} for n, at in enumerate((0, 4, 8, 10))]
    (section,) = _perplexity_page(*rows, updates=10, form=lambda _, sections: sections)
    (figure,) = (of for of in section.blocks if isinstance(of, Panels))
    dots = re.findall(r"<circle[^>]*>", str(svg.joined(figure.panels[0].drawn)))
    assert [float(re.findall(r'cx="([\d.]+)%"', dot)[0]) for dot in dots if "m1" in dot] == [0, 40, 80, 100]


@pytest.mark.parametrize("ends", [[1, 2, 3, 4, 5], [2, 4, 6, 8, 9, 10, 11, 12], [*range(1, 41)]])
def test_the_perplexities_beside_dots_do_not_overlap_on_a_phone(ends: list[int]) -> None:
    """Where the plot is 302 px wide and a character takes up to 8 px; of eight epochs the last four are shorter."""
    rows = [{"epoch": n, "updates": at, "validation_loss": 4.0 - n / 50} for n, at in enumerate([0, *ends])]
    (section,) = _perplexity_page(*rows, updates=ends[-1], form=lambda _, sections: sections)
    (figure,) = (of for of in section.blocks if isinstance(of, Panels))
    label = r'<text x="([\d.]+)%"[^>]* text-anchor="(\w+)" class="ink">([^<]+)<'
    found = re.findall(label, str(svg.joined(figure.panels[0].drawn)))
    assert [found[0][1], found[-1][0], found[-1][1]] == ["start", "100", "end"], "the first and the last"
    rest = found[1:]  # the first is lower and on the right of its dot
    begins = [3.02 * float(x) - {"middle": 4, "end": 8}[anchor] * len(said) for x, anchor, said in rest]
    stops = [begin + 8 * len(said) for begin, (*_, said) in zip(begins, rest, strict=True)]
    assert all(stop <= begin for stop, begin in zip(stops[:-1], begins[1:], strict=True))
    assert len(rest) >= 4


def _drawn(title: str) -> tuple[str, str]:
    """What is drawn of the classes of `_task`, and what a screen reader says of it."""
    (found,) = (of for of in task_panels(_task()) if of.title == title)
    return str(svg.joined(found.panels[0].drawn)), found.panels[0].label


def test_a_row_of_a_confusion_is_the_right_class_and_a_column_the_predicted_one() -> None:
    """One of ten bad texts is called good, 2.5 of ten good ones are called bad."""
    drawn, said = _drawn("Confusion")
    assert "true bad\npredicted good\n1 of 10" in drawn
    assert re.findall(r'class="ink">(\d+)<', drawn) == ["90", "10", "25", "75"], "% of the row"
    assert "true bad, predicted good: 1;" in said


@pytest.mark.parametrize(
    ("names", "labels", "said"),
    [
        (("bad", "good"), ["bad", "good"], ""),
        (("negative", "positive"), ["neg.", "pos."], ""),
        (("very bad", "very good"), ["0", "1"], " Class 0: very bad; class 1: very good."),
    ],
)
def test_classes_are_numbered_where_their_cut_names_are_alike(names, labels: list[str], said: str) -> None:
    found = ClassBreakdown(confusion=[[9, 1], [2, 8]], classes={name: {} for name in names}, reliability={})
    drawn = confusion(_task(), {"full": found})
    assert re.findall(r"text-anchor=.end.[^>]*>([^<]+)<", str(svg.joined(drawn.panels[0].drawn))) == labels
    assert drawn.note.endswith(f"Bold: % of the row.{said}")


@pytest.mark.parametrize(("size", "cells"), [(6, 36), (7, 8)])
def test_many_classes_have_no_cells_without_examples(size: int, cells: int) -> None:
    counts = np.diag([3.0] * size)
    counts[0, 1] = 1
    classes = {f"c{number}": {} for number in range(size)}
    drawn = confusion(_task(), {"full": ClassBreakdown(confusion=counts.tolist(), classes=classes, reliability={})})
    assert str(svg.joined(drawn.panels[0].drawn)).count("<rect") == cells
    assert ("Bold" in drawn.note) == ('class="ink"' in str(svg.joined(drawn.panels[0].drawn)))


def test_a_class_without_examples_has_no_share_that_is_right() -> None:
    """Of 0 examples none is 0%, neither in a cell nor in words, which many classes have in place of counts."""
    for counts, inks, said in (
        ([[9.0, 1.0], [0.0, 0.0]], ["90", "10", "–", "–"], "true c1, predicted c1: 0"),
        (np.diag([3.0] * 6 + [0.0]).tolist(), [], "c5 100% right"),
    ):
        classes = {f"c{number}": {} for number in range(len(counts))}
        found = ClassBreakdown(confusion=counts, classes=classes, reliability={})
        (panel,) = confusion(_task(), {"full": found}).panels
        assert re.findall(r'class="ink">([^<]+)<', str(svg.joined(panel.drawn))) == inks
        assert panel.label.endswith(said)


def test_the_area_of_a_dot_of_a_calibration_is_a_share_of_examples_on_an_axis_from_chance_or_below() -> None:
    """The axis starts at 50% or, if lower, at the lowest confidence; the dots hold 3/4 and 1/4 of the examples."""
    for low, places in ((0.6, ["20", "80"]), (0.3, ["0", "85.71"])):
        bins = {"confidence": [low, 0.9], "accuracy": [0.5, 0.5], "examples": [15.0, 5.0]}
        found = ClassBreakdown(confusion=[[9, 1], [2, 8]], classes={name: {} for name in "ab"}, reliability=bins)
        drawn = str(svg.joined(calibration(_task(), {"full": found}).panels[0].drawn))
        dots = re.findall(r'<circle cx="([\d.]+)%" cy="50%" r="([\d.]+)"', drawn)
        assert dots == [(places[0], "8.1"), (places[1], "5.5")], "2 + 7 √0.75 and 2 + 7 √0.25 px"


def test_a_bin_of_confidence_that_one_of_three_seeds_has_is_not_of_no_examples() -> None:
    bins = {"confidence": [0.6, 0.9], "accuracy": [1.0, 0.5], "examples": [1 / 3, 59 / 3]}
    found = ClassBreakdown(confusion=[[9, 1], [2, 8]], classes={name: {} for name in "ab"}, reliability=bins)
    drawn = str(svg.joined(calibration(_compared({"full": 0.9}, seeds=3), {"full": found}).panels[0].drawn))
    assert re.findall(r"%\n(.*?)\"", drawn) == ["0.3 reviews", "19.7 reviews"]


def test_confidence_is_not_taken_for_accuracy() -> None:
    drawn, said = _drawn("Calibration")
    assert "confidence 90%, accuracy 50%" in drawn
    assert "confidence 90% accuracy 50%" in said
