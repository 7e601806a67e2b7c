import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from retrace.datasets.examples import Example
from retrace.datasets.squad import Answer, Question
from retrace.evaluation.assessment import AnyTask, MethodRun, assess
from retrace.evaluation.classification import ClassificationTask
from retrace.evaluation.metrics import accuracy
from retrace.evaluation.metrics.calibration import reliability
from retrace.evaluation.metrics.squad_v2 import threshold_curve
from retrace.evaluation.outcomes import Answered, Classified, Scoring
from retrace.evaluation.question_answering import QuestionAnsweringTask
from retrace.evaluation.records import AnswerBreakdown, ClassBreakdown, Details, MethodDetails, TaskDetails
from retrace.evaluation.settings import MetricSettings
from retrace.results.predictions import PredictedEpoch
from retrace.statistics.intervals import Resampled, mean_of, resample
from retrace.statistics.scales import Figure
from stages.evaluate import print_headlines
from tests.campaigns.cases import memory, reset_memory

CHOSEN: Any = {"classification": ("accuracy", "f1"), "question_answering": ("squad_v2",)}
SETTINGS = MetricSettings(**CHOSEN, every_epoch=("accuracy", "squad_v2"), bootstrap_samples=400)
TRAIN = [Example(text, None, label) for text, label in (("good ale", 1), ("bad ale", 0), ("good hall", 1))]
DEV = [Example(f"{'good' if number % 2 else 'bad'} thing {number}", None, number % 2) for number in range(60)]
LABELS = np.array([example.label for example in DEV])
CLASSES = ("bad", "good")
TASK = ClassificationTask(CLASSES, TRAIN, DEV)
EVERY = ("accuracy", "precision", "recall", "f1", "matthews", "roc_auc", "calibration")
OTHERS = ("majority", "tfidf", "before_training")  # what each seed is compared with
Losses = Sequence[tuple[float | None, float]]
LOSSES: Losses = ((None, 0.7), (0.5, 0.4), (0.2, 0.6))


def _logits(decided: Iterable[int]) -> pd.DataFrame:
    return pd.DataFrame([{"logit_0": 1.0 - label, "logit_1": float(label)} for label in decided])


def _answers(rows: Iterable[tuple[str, str, float, float]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["id", "text", "score", "null_score"])


def _run(*rows: pd.DataFrame, method: str = "full", seed: int = 1, losses: Losses = LOSSES) -> MethodRun:
    """The predictions of three epochs, or the same of each; the second is kept."""
    of_epoch = rows if len(rows) > 1 else rows * 3
    epochs = [PredictedEpoch(n, *losses[n], n == 1, found) for n, found in enumerate(of_epoch)]
    return MethodRun(method, seed, epochs)


def _trial(method: str, seed: int, wrong: tuple[int, int, int]) -> MethodRun:
    """A run that gets the first `wrong` examples wrong, epoch by epoch."""
    decided = [[label ^ (place < errors) for place, label in enumerate(LABELS.tolist())] for errors in wrong]
    return _run(*map(_logits, decided), method=method, seed=seed)


def _assess(*trials: MethodRun, metrics: Sequence[str] = SETTINGS.classification) -> TaskDetails:
    return assess(TASK, Scoring(metrics), trials, SETTINGS)


def _assess_one(task: AnyTask, rows: pd.DataFrame, *metrics: str) -> TaskDetails:
    return assess(task, Scoring(metrics), [_run(rows)], SETTINGS)


def _answered(golds: list[str], answers: list[str], *metrics: str) -> MethodDetails:
    """A model that gives these answers to questions on one passage; "" is no answer."""
    passage = "Ada Lund founded the mill"
    right = [(Answer(gold, passage.index(gold)),) if gold else () for gold in golds]
    questions = [Question(str(number), passage, "?", of) for number, of in enumerate(right)]
    rows = _answers((str(number), answer, 0.0, 0.0) for number, answer in enumerate(answers))
    return _assess_one(QuestionAnsweringTask([], questions), rows, "squad_v2", *metrics).methods["full"]


def test_the_epoch_that_was_kept_is_scored() -> None:
    figures = _assess(_trial("full", 1, (30, 6, 0))).methods["full"]
    assert figures.seeds["1"].epoch == 1
    assert figures.seeds["1"].figures["accuracy"] == figures.figures["accuracy"] == 0.9
    assert figures.seeds["1"].before["accuracy"] == 0.5
    assert [of["validation_loss"] for of in (figures.seeds["1"].before, figures.figures)] == [0.7, 0.4]
    assert (figures.std, figures.intervals_of) == ({}, "examples (one seed)")


def test_seeds_have_a_mean_a_standard_deviation_and_two_intervals() -> None:
    found = _assess(_trial("full", 1, (30, 6, 0)), _trial("full", 2, (30, 18, 0)))
    full = found.methods["full"]
    assert full.figures["accuracy"] == pytest.approx(0.8)
    assert full.std["accuracy"] == pytest.approx(0.2 / np.sqrt(2))
    interval = full.intervals["accuracy"]
    assert interval["low"] < interval["low_examples"] < 0.8 < interval["high_examples"] < interval["high"]


def test_seeds_that_are_all_the_same_have_no_deviation() -> None:
    """Not the 1e-16 that is left when the mean of three equal figures is rounded, which `retrace review` would test."""
    found = _assess(*(_trial("full", seed, (30, 18, 0)) for seed in (1, 2, 3)))
    assert set(found.methods["full"].std.values()) == {0.0}


def test_methods_are_held_against_baselines_on_the_same_examples() -> None:
    """The method is right on 54 of 60 reviews, the majority class on 30: on 27 only the method, on 3 only the class."""
    alike = _assess(*(_trial("full", seed, (30, 6, 0)) for seed in (1, 2, 3))).methods["full"].ahead["majority"]
    reach = 1.96 * ((30 / 60 - 0.4**2) / 60) ** 0.5
    assert alike == pytest.approx({"low": 0.4 - reach, "high": 0.4 + reach}, abs=0.01)
    # Seeds with accuracies of 0.6, 0.8 and 1: their mean's standard error is 0.2 / √3, Student's quantile 4.30.
    trials = [_trial("full", seed, (30, wrong, 0)) for seed, wrong in ((1, 24), (2, 12), (3, 0))]
    apart = _assess(*trials).methods["full"].ahead["majority"]
    assert apart["low"] < 0.3 - 4.30 * 0.2 / 3**0.5 < 0 < apart["high"]


def test_methods_are_compared_and_the_better_one_named_from_several_seeds() -> None:
    one = _assess(_trial("full", 1, (30, 2, 0)), _trial("scratch", 1, (30, 25, 0)))
    assert (one.comparisons[0].of, one.comparisons[0].verdict) == ("models", "models differ")
    assert [method for method, of in one.methods.items() if of.seeds["1"].flags] == ["scratch"]
    wrong = {"full": (2, 3, 1), "scratch": (25, 24, 26)}
    found = _assess(*(_trial(method, seed, (30, of, 0)) for method in wrong for seed, of in enumerate(wrong[method])))
    (accuracy, *_) = found.comparisons
    assert (accuracy.first, accuracy.second, accuracy.of, accuracy.verdict) == ("full", "scratch", "methods", "full")
    assert found.methods["full"].flags == {}


def test_a_method_that_is_clearly_better_with_two_seeds_is_not_flagged() -> None:
    """21 points ahead: Student's t of two degrees of freedom for two samples, where Welch's has one, and 32 points."""
    wrong = {("full", 1): 6, ("full", 2): 9, ("scratch", 1): 20, ("scratch", 2): 20}
    found = _assess(*(_trial(method, seed, (30, of, 0)) for (method, seed), of in wrong.items()))
    assert found.methods["full"].flags == {}


def test_every_interval_holds_its_figure_and_by_calibration_no_method_is_better() -> None:
    """Its error is above 0 by chance, by more for some models than for others."""
    generator, trials = np.random.default_rng(1), []
    for method, sharper in (("full", 1.0), ("lora", 20.0)):
        for seed in (1, 2, 3):
            margins = np.abs(generator.normal(0, 1, len(DEV)))  # of a model that is right as often as it says
            right = generator.random(len(DEV)) < 1 / (1 + np.exp(-margins))
            said = margins * np.where(right == (LABELS == 1), 1, -1) * sharper
            trials.append(_run(pd.DataFrame({"logit_0": 0.0, "logit_1": said}), method=method, seed=seed))
    found = _assess(*trials, metrics=EVERY)
    for method in ("full", "lora"):
        details = found.methods[method]
        assert details.intervals_of == "examples and fine-tuning seeds"
        for of in (details, *details.seeds.values()):
            assert len(of.intervals) == 15
            assert "expected_calibration_error" in of.figures.keys() - of.intervals.keys()
            assert all(ends["low"] <= of.figures[name] <= ends["high"] for name, ends in of.intervals.items())
    assert "expected_calibration_error" not in {pair.figure for pair in found.comparisons}


def test_one_figure_by_another_name_has_the_same_interval_and_test() -> None:
    found = _assess(_trial("full", 1, (30, 0, 0)), _trial("lora", 1, (30, 12, 0)))
    for details in found.methods.values():
        accuracy, micro = (details.intervals[name] for name in ("accuracy", "f1_micro"))
        assert micro == pytest.approx(accuracy, rel=1e-12)
        assert accuracy["high"] - accuracy["low"] > 0.05
    tests = {pair.figure: (pair.test, pair.p) for pair in found.comparisons}
    assert tests["f1_micro"] == tests["accuracy"]
    assert tests["f1"][0] == "paired bootstrap"
    # Everything is right, but no figure is certain.
    assert all(ends["low"] < ends["high"] == 1 for ends in found.methods["full"].intervals.values())


def test_exact_matches_of_a_kind_have_the_interval_of_so_many_questions() -> None:
    ends = _answered(["Ada"] * 30 + [""] * 10, [""] * 4 + ["Bob"] * 36, "rouge").intervals
    assert ends["HasAns_exact_match"] == ends["HasAns_f1"] == {"low": 0.0, "high": pytest.approx(11.35, abs=0.01)}
    assert ends["NoAns_exact_match"] == ends["NoAns_f1"] == {"low": 0.0, "high": pytest.approx(27.75, abs=0.01)}
    assert ends["rouge1"] == {end: at / 100 for end, at in ends["HasAns_exact_match"].items()}


def test_f1_is_of_all_questions_however_few_have_an_answer() -> None:
    """One question of 40 has an answer, and half of it is found; the other 39 are rightly refused."""
    full = _answered(["Ada Lund", *[""] * 39], ["Ada", *[""] * 39])
    assert full.figures["f1"] == pytest.approx((39 + 2 / 3) * 100 / 40)
    assert min(full.intervals[name]["low"] for name in ("f1", "best_f1")) > 95
    assert full.intervals["HasAns_f1"] == {"low": 0.0, "high": 100.0}
    # Student's t; the 40 questions vary as their resamples say. Half of a question more is answered by one only, half
    # of one by the other only, and one by both or by neither: the sum of squares grows by 100².
    ahead, differing = 200 / 120, {"f1": np.array([200 / 3] + [0.0] * 39)}
    drawn = resample({"": mean_of(differing)}, 40, SETTINGS.bootstrap_samples, SETTINGS.seed)[""]["f1"]
    squares = 40 * (40 * np.var(drawn, ddof=1) * 40 / 39 + ahead**2) + 100**2
    reach = 2.022691 * ((squares / 42 - (40 * ahead / 42) ** 2) / 42) ** 0.5
    assert full.ahead["no_answer"] == pytest.approx({"low": ahead - reach, "high": ahead + reach})


def test_a_model_that_learned_nothing_is_flagged_with_evidence() -> None:
    full = _assess(_trial("full", 1, (30, 29, 28)), _trial("scratch", 1, (30, 29, 28))).methods["full"]
    assert full.seeds["1"].flags.keys() >= {"not_above_majority", "not_above_before_training"}
    assert full.flags.keys() == {"not_above_scratch"}
    one = 2.000995 / 62  # Student's t; as if the two decided one of 62 examples otherwise
    note = "for these models; one seed says nothing about the methods"
    evidence = ["accuracy", 31 / 60, "scratch", 31 / 60, pytest.approx(-one), pytest.approx(one), note]
    assert [*vars(full.flags["not_above_scratch"]).values()] == evidence


@pytest.mark.parametrize(("test", "flagged"), [([], True), ([DEV[:10]], False)])
def test_losses_that_rise_are_flagged_where_there_is_a_learning_curve(test: list[list[Example]], flagged: bool) -> None:
    task, labels = ClassificationTask(CLASSES, TRAIN, DEV, *test), LABELS[:10] if test else LABELS
    run = _run(_logits(labels), losses=((None, 0.5), (0.5, 0.6), (0.6, 0.7)))
    flags = assess(task, Scoring(("accuracy",)), [run], SETTINGS).methods["full"].seeds["1"].flags
    assert ("loss_diverges" in flags) == flagged


def test_one_class_for_all_is_flagged_with_the_figures_of_a_report() -> None:
    """BERT on WikiText-2 calls all of SST-2's validation set positive."""
    dev = [Example(f"sentence {number}", None, int(number < 444)) for number in range(872)]
    printed = {"accuracy": 0.5092, "precision": 0.5092, "recall": 1.0, "f1": 0.6748}
    task = ClassificationTask(CLASSES, TRAIN, dev)
    full = _assess_one(task, _logits([1] * 872), *printed).methods["full"]
    assert {name: round(full.figures[name], 4) for name in printed} == printed
    assert full.seeds["1"].flags.keys() >= {"one_class_only", "not_above_majority", "recall_without_accuracy"}


def test_answers_that_learned_nothing_are_flagged_as_in_reports() -> None:
    # A frozen Llama: F1 of 75 without an exact match, as its answers hold all of the passage.
    frozen = _answered(["Lund founded the mill"] * 40, ["Ada Lund founded the mill"] * 40)
    assert (frozen.figures["exact_match"], frozen.figures["f1"]) == (0.0, pytest.approx(600 / 7))
    assert frozen.seeds["1"].flags.keys() >= {"f1_without_exact_match", "always_the_same"}
    # BERT trained on pairs: exact matches of 14.98 and 7.48, below those of no answer at all.
    paired = _answered(["mill"] * 100 + [""] * 100, ["mill"] * 15 + ["Ada Lund"] * 185)
    figures = {"HasAns_exact_match": 15.0, "NoAns_exact_match": 0.0, "NoAns_f1": 0.0, "exact_match": 7.5}
    assert figures.items() <= paired.figures.items()
    assert "not_above_no_answer" in paired.seeds["1"].flags


def test_a_model_that_never_answers_scores_what_never_answering_does() -> None:
    """Also where the only right answer, "the", is empty after normalising: to abstain is wrong there."""
    passage = "Ada Lund founded the mill"
    golds = [(Answer("the", 17),)] * 10 + [(Answer("Ada", 0),)] * 20 + [()] * 10
    questions = [Question(str(number), passage, "?", right) for number, right in enumerate(golds)]
    rows = _answers((question.id, "mill", 0.0, 1.0) for question in questions)
    found = _assess_one(QuestionAnsweringTask([], questions), rows, "squad_v2")
    full, nothing = found.methods["full"], found.baselines["no_answer"]
    assert nothing.figures == {name: full.figures[name] for name in nothing.figures}
    assert (nothing.figures["f1"], nothing.figures["HasAns_f1"]) == (25.0, 0.0)
    assert full.ahead["no_answer"]["high"] > 0, "it is not worse than itself"


def test_headlines_are_means_over_seeds_and_flags_are_counted_over_them() -> None:
    wrong = {("full", 1): 6, ("full", 2): 30, ("scratch", 1): 30, ("scratch", 2): 30}
    found = _assess(*(_trial(method, seed, (30, of, 0)) for (method, seed), of in wrong.items())).metrics
    assert found.to_json() == {
        "baselines": {"majority": {"accuracy": 0.5}, "tfidf": {"accuracy": 0.5}},
        "full": {"accuracy": 0.7, "f1_macro": pytest.approx(0.7), "validation_loss": 0.4},
        "scratch": {"accuracy": 0.5, "f1_macro": 0.5, "validation_loss": 0.4},
        "flags": {
            "full": dict.fromkeys((*(f"not_above_{name}" for name in OTHERS), "not_above_scratch"), 1),
            "scratch": {f"not_above_{name}": 2 for name in OTHERS},
        },
    }


def test_examples_of_the_training_data_are_counted_and_scores_given_without_them() -> None:
    task = ClassificationTask(CLASSES, [*TRAIN, *DEV[:6]], DEV)
    found = _assess_one(task, _logits([1] * 6 + LABELS[6:].tolist()), "accuracy")
    assert found.flags == {"dev_in_training": "6 of 60 examples of dev are in train too"}
    group = found.methods["full"].groups["overlap"]["not in the training data"]
    assert (group.examples, group.figures) == (54, {"accuracy": 1.0})
    assert group.intervals["accuracy"] == {"low": pytest.approx(0.9336, abs=1e-4), "high": 1.0}  # Wilson's of 54 of 54
    assert found.methods["full"].figures["accuracy"] == pytest.approx(57 / 60)


def test_texts_that_the_test_shares_with_dev_and_training_are_counted() -> None:
    task = ClassificationTask(CLASSES, TRAIN, DEV[:2], [*DEV[2:], TRAIN[0], *DEV[:2]])
    found = _assess_one(task, _logits([*LABELS[2:], 1, *LABELS[:2]]), "accuracy")
    train, dev = "1 of 61 examples of test are in train too", "2 of 61 examples of test are in dev too"
    assert found.flags == {"test_in_training": train, "test_in_validation": dev}


def test_lengths_classes_and_confusions() -> None:
    """One model calls 6 of the 30 bad reviews good, the other none."""
    seeds = [_run(_logits([*[1] * wrong, *LABELS[wrong:]]), seed=seed) for seed, wrong in ((1, 12), (2, 0))]
    details = _assess(*seeds).methods["full"]
    (group,) = details.groups["length"].values()
    assert (group.examples, group.figures["accuracy"]) == (60, pytest.approx((0.9 + 1) / 2))
    assert isinstance(details.breakdown, ClassBreakdown)
    assert details.breakdown.confusion == [[27, 3], [0, 30]]
    bad = {"precision": 1.0, "recall": 0.9, "f1": (48 / 54 + 1) / 2, "examples": 30}
    good = {"precision": (30 / 36 + 1) / 2, "recall": 1.0, "f1": (60 / 66 + 1) / 2, "examples": 30}
    assert details.breakdown.classes == {"bad": pytest.approx(bad), "good": pytest.approx(good)}


def test_questions_by_span_and_null_score() -> None:
    questions = [Question("a", "Ada met Bob", "?", (Answer("Ada", 0),)), Question("b", "Ada met", "?", ())]
    task = QuestionAnsweringTask(questions[:1], questions)
    outcome = task.outcome(_answers([("a", "Ada", 2.0, 1.0), ("b", "met", 0.0, 1.0)]))
    assert outcome.answers == ("Ada", "")
    assert task.shared.tolist() == [True, False]
    assert {kind: {name: of.tolist() for name, of in groups.items()} for kind, groups in task.groups.items()} == {
        "length": {"2 words of passage": [False, True], "3 words of passage": [True, False]},
        "overlap": {"not in the training data": [False, True]},
        "answer": {"has an answer": [True, False], "has none": [False, True]},
        "question word": {"other": [True, True]},
    }
    curve = threshold_curve([outcome])
    assert task.breakdown([outcome]) == AnswerBreakdown(answered=1, answerable=1, questions=2, threshold_curve=curve)
    assert task.breakdown([outcome, replace(outcome, answers=("", ""))]).answered == 0.5
    # The spans' scores are 1 above and 1 below that of no answer: with a threshold between, both are right.
    assert curve["f1"] == curve["exact_match"] == [50.0, *[100.0] * (len(curve["f1"]) - 2), 50.0]
    assert Scoring(("squad_v2",)).score(outcome)["best_f1"] == 100.0
    assert set(task.baselines) == {"no_answer", "word_overlap"}


def test_whole_passages_are_drawn_as_their_questions_are_alike() -> None:
    """All of a passage's five questions are answered, or none: intervals are about √5 times as wide as by question."""
    right = np.arange(40) % 3 > 0
    found = {}
    for passages in ("shared", "own"):
        named = [f"Ada did {place // 5 if passages == 'shared' else place}." for place in range(200)]
        questions = [Question(str(place), text, "Who?", (Answer("Ada", 0),)) for place, text in enumerate(named)]
        answers = _answers((str(place), "Ada" if right[place // 5] else "did", 1.0, 0.0) for place in range(200))
        found[passages] = _assess_one(QuestionAnsweringTask([], questions), answers, "squad_v2")
    widths = {}
    for passages, details in found.items():
        ends = details.methods["full"].intervals["exact_match"]
        widths[passages] = ends["high"] - ends["low"]
    assert widths["shared"] == pytest.approx(5**0.5 * widths["own"], rel=0.06)
    said = "whole passages are resampled, 40 in all, as examples that share one are not independent"
    assert found["shared"].notes["intervals, p values"] == said
    assert "intervals, p values" not in found["own"].notes
    # A group of examples, such as those of one length, has the passages of its own questions.
    (every,) = found["shared"].methods["full"].groups["question word"].values()
    assert every.intervals["f1"] == found["shared"].methods["full"].intervals["f1"]


def test_one_text_tells_as_little_in_a_group_as_in_a_figure_of_its_examples() -> None:
    """Only one of three passages has answers; eight of ten are found."""
    questions = [Question(str(place), "Ada did.", "Who?", (Answer("Ada", 0),)) for place in range(10)]
    questions += [Question(str(place), f"Bob did {place % 2}.", "Who?", ()) for place in range(10, 20)]
    answers = _answers((str(place), "Ada" if place < 8 else "did", 1.0, 2.0 * (place > 12)) for place in range(20))
    full = _assess_one(QuestionAnsweringTask([], questions), answers, "squad_v2").methods["full"]
    group, nothing = full.groups["answer"]["has an answer"], {"low": 0.0, "high": 100.0}
    assert (group.intervals["exact_match"], group.intervals["f1"]) == (nothing, nothing)
    assert full.intervals["HasAns_exact_match"] == nothing


def test_the_first_text_of_a_pair_is_what_examples_share() -> None:
    pairs = [Example(f"text {number // 2}", f"aspect {number}", number % 2) for number in range(8)]
    task = ClassificationTask(CLASSES, TRAIN, pairs)
    assert task.clusters is not None
    assert task.clusters.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert task.notes["intervals, p values"].startswith("whole first texts are resampled, 4 in all")
    assert TASK.clusters is None


def test_scores_by_threshold_go_from_always_abstaining_to_never() -> None:
    """Ten questions, of which the surer five have an answer; four of these are answered right."""
    golds, spans = [("Ada",)] * 5 + [()] * 5, ["Ada"] * 4 + ["Bob"] + ["Ada"] * 5
    outcome = Answered(tuple(golds), tuple(spans), tuple(spans), np.arange(10.0))
    found = threshold_curve([outcome, outcome])
    # Just below 0, 0, the points from 1% to 99%, and the other end.
    assert found["threshold"] == pytest.approx([0.0, 0.0, *np.linspace(0.09, 8.91, 61), 9.0])
    # None is answered, one, nine and all; five of those that are not are rightly refused.
    assert [found["f1"][place] for place in (0, 1, -2, -1)] == [50.0, 60.0, 50.0, 40.0]
    assert max(found["f1"]) == 90.0
    wrong = replace(outcome, spans=("Bob",) * 10)
    assert threshold_curve([outcome, wrong])["f1"][1] == (60.0 + 50.0) / 2
    assert threshold_curve([Answered(tuple(golds), tuple(spans))]) == {}


def test_bins_of_confidence_are_pooled_over_seeds() -> None:
    labels, predicted = np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1])
    seeds = [Classified(("a", "b"), labels, predicted, np.array([[p, 1 - p], [0.98, 0.02], [0.98, 0.02], [0.02, 0.98]]))
             for p in (0.61, 0.64)]  # fmt: skip
    found = reliability(seeds)
    assert found["examples"] == [1.0, 3.0]
    assert found["accuracy"] == pytest.approx([1.0, 2 / 3])
    assert found["confidence"] == pytest.approx([0.625, 0.98])


@pytest.mark.parametrize("metric", EVERY[:-1])
def test_any_metric_of_classes_alone_is_a_headline(metric: str) -> None:
    trials = (_trial("full", 1, (30, 6, 0)), _trial("scratch", 1, (30, 12, 0)))
    headline = {"f1": "f1_macro"}.get(metric, metric)
    found, beside = (_assess(*trials, metrics=of) for of in ([metric], ["calibration", metric]))
    assert found.headlines == beside.headlines == [headline]
    assert found.methods["full"].intervals.keys() >= {headline} <= found.metrics.methods["full"].keys()


@pytest.mark.parametrize("metric", ["squad_v2", "bleu", "rouge", "meteor"])
def test_any_metric_of_answers_alone_is_a_headline(metric: str) -> None:
    questions = [Question(str(n), "Ada did.", "Who?", (Answer("Ada did", 0),)) for n in range(20)]
    rows = _answers((question.id, "Ada did", 1.0, 0.0) for question in questions)
    found = _assess_one(QuestionAnsweringTask(questions[:2], questions), rows, metric)
    assert found.headlines[0] in found.methods["full"].intervals


def test_a_score_that_the_data_does_not_allow_is_absent() -> None:
    task = ClassificationTask(CLASSES, TRAIN, [example for example in DEV if example.label])
    found = _assess_one(task, pd.DataFrame({"logit_0": 0.0, "logit_1": np.arange(30.0)}), "roc_auc")
    assert (found.headlines, [*found.methods["full"].figures]) == ([], ["validation_loss"])


@pytest.mark.parametrize("metrics", [("accuracy", "f1"), ("accuracy",)])
@pytest.mark.parametrize("order", [1, -1])
def test_a_figure_that_one_seed_lacks_has_no_mean_over_the_others(
    monkeypatch: pytest.MonkeyPatch, metrics: Sequence[str], order: int
) -> None:
    """A metric that is absent where a model calls no text good, as from one of two seeds."""

    def resampled(outcome: Classified) -> Resampled:
        good = outcome.predicted == 1
        return mean_of({"own": outcome.labels}, good) if good.any() else lambda _: {}

    monkeypatch.setattr(accuracy, "FIGURES", {"own": Figure("fraction", "higher")})
    monkeypatch.setattr(accuracy, "resampled", resampled)
    monkeypatch.delattr(accuracy, "shares")
    seeds = [_run(_logits(said), seed=seed) for seed, said in enumerate((LABELS, [0] * 60))][::order]
    sound = [_run(_logits(LABELS), method="scratch", seed=seed) for seed in (0, 1)]
    found = _assess(*seeds, *sound, metrics=metrics)
    full, scratch = found.methods.values()
    assert ("own" in full.figures, "own" in full.intervals, scratch.figures["own"]) == (False, False, 1.0)
    assert [full.seeds[seed].figures.get("own") for seed in "01"] == [1.0, None]
    assert "own" not in {pair.figure for pair in found.comparisons}
    assert found.headlines == (["f1_macro"] if "f1" in metrics else ["own"])
    print_headlines(Details(tasks={"sst2": found}))


def test_the_report_says_how_a_row_is_given_away() -> None:
    pairs = [Example("the old ale house", term, 1) for term in ("ale", "house")]
    found = ClassificationTask(CLASSES, pairs[:1], pairs[1:])
    assert found.given.all()
    assert found.given_how.startswith("have a first text")
    assert [*found.groups["length"]] == ["4 words of first text"]


def test_150_classes_over_5000_rows_take_less_than_10_seconds_and_a_gigabyte() -> None:
    """With 1,500 resamples, as the processor may be slow or shared; the model knows the class of every other row."""
    generator, classes, count = np.random.default_rng(0), 150, 5000
    labels = np.arange(count) % classes
    words = generator.integers(2000, size=(count, 8)).astype(str)
    rows = [Example(f"word{label} {' '.join(row)}", None, int(label)) for label, row in zip(labels, words, strict=True)]
    logits = generator.normal(size=(count, classes))
    logits[::2][np.arange(count // 2), labels[::2]] += 99
    predictions = pd.DataFrame(logits, columns=[f"logit_{number}" for number in range(classes)])
    task = ClassificationTask([str(number) for number in range(classes)], rows, rows)
    held, began = reset_memory(), time.process_time()
    found = assess(task, Scoring(EVERY), [_run(predictions)], SETTINGS.model_copy(update={"bootstrap_samples": 1500}))
    assert time.process_time() - began < 10
    assert memory("VmHWM") - held < 1 << 30
    right = found.methods["full"].figures["accuracy"]
    assert 0.5 <= right < 0.52  # the others are guessed
