from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from retrace.datasets.squad import Question
from retrace.evaluation.flags import decision_flags, figure_flags, loss_flags, overlap_flags
from retrace.evaluation.outcomes import Answered, Classified, Scoring
from retrace.evaluation.question_answering import QuestionAnsweringTask

SCALES = {"matthews": "correlation", "exact_match": "percentage", "f1": "percentage", "best": "score"}
SCALES |= dict.fromkeys(("accuracy", "precision", "recall"), "fraction")


def test_the_same_decision_for_all() -> None:
    labels, all_yes = np.array([0, 1, 1]), {"one_class_only": "all 3 examples are predicted as yes"}
    assert decision_flags(Classified(("no", "yes"), labels, np.ones(3, int))) == all_yes
    assert decision_flags(Classified(("no", "yes"), labels, labels)) == {}
    assert decision_flags(Classified(("no", "yes"), np.ones(3, int), np.ones(3, int))) == {}, "as it should be"
    assert decision_flags(Classified(("no", "yes"), labels[:1], np.ones(1, int))) == {}, "one example tells nothing"
    assert decision_flags(Answered((("Yes", "yes."),) * 3, ("yes",) * 3)) == {}, "right, though spelt differently"
    golds = (("Ada",), ())
    assert decision_flags(Answered(((), ()), ("", ""))) == decision_flags(Answered((("x",), ("x",)), ("x", "x"))) == {}
    assert decision_flags(Answered(golds, ("", ""))).keys() == {"always_empty"}
    assert decision_flags(Answered(golds, ("the", "the"))).keys() == {"always_the_same"}
    assert decision_flags(Answered(golds, ("the", ""))) == {}


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        ([40, 40, 30], "c (the class of 30 of 110)"),  # an equal share is 36.7
        ([40, 40, 29], None),  # so few may be missed by chance
        ([200, 190, 60], None),  # less than half of the equal share of 150
        ([200, 190, 78], "c (the class of 78 of 468)"),
    ],
)
def test_a_common_class_that_is_never_predicted(labels: list[int], found: str | None) -> None:
    gold = np.repeat([0, 1, 2], labels)
    never = Classified(("a", "b", "c"), gold, np.minimum(gold, 1))
    assert decision_flags(never).get("never_predicted") == (found and f"no example is predicted as {found}")
    once = never.predicted.copy()
    once[0] = 2
    assert decision_flags(Classified(("a", "b", "c"), gold, once)) == {}


def test_of_many_classes_that_are_never_predicted_three_are_named() -> None:
    """Some data sets have 150 classes, of which a model from scratch predicts a few."""
    gold = np.repeat(np.arange(7), 30)
    evidence = decision_flags(Classified(tuple("abcdefg"), gold, np.minimum(gold, 1)))["never_predicted"]
    names = " or ".join(f"{name} (the class of 30 of 210)" for name in "cde")
    assert evidence == f"no example is predicted as {names} or 2 more"


FLAGGED = [
    ({"accuracy": 1.0, "exact_match": 100.0, "f1": 100.0, "matthews": -1.0, "best": -7.5}, set()),
    ({"accuracy": 1.01}, {"off_scale"}),
    ({"accuracy": float("nan")}, {"off_scale"}),
    ({"matthews": -1.1}, {"off_scale"}),
    # Just beyond what is suspicious, and just within.
    ({"f1": 19.9, "exact_match": 0.0}, set()),
    ({"f1": 20.1, "exact_match": 2.0}, {"f1_without_exact_match"}),
    ({"f1": 30.0, "exact_match": 3.1}, set()),
    ({"accuracy": 0.6, "precision": 0.6, "recall": 0.9985}, set()),
    ({"accuracy": 0.6, "precision": 0.6, "recall": 0.9995}, {"recall_without_accuracy"}),
    ({"accuracy": 0.6, "precision": 0.6019, "recall": 1.0}, {"recall_without_accuracy"}),
    ({"accuracy": 0.6, "precision": 0.6021, "recall": 1.0}, set()),
    ({"accuracy": 0.899, "precision": 0.899, "recall": 1.0}, {"recall_without_accuracy"}),
    ({"accuracy": 0.901, "precision": 0.901, "recall": 1.0}, set()),
    ({"accuracy": 1 + 1e-7, "matthews": -1 - 1e-7}, set()),  # which rounding leaves
    ({"f1": 50.0, "exact_match": 50.0000001}, set()),
    ({"f1": 50.0, "exact_match": 50.00001}, {"f1_below_exact_match"}),
]


@pytest.mark.parametrize(("figures", "flags"), FLAGGED)
def test_figures(figures: dict[str, float], flags: set[str]) -> None:
    assert figure_flags(figures, SCALES).keys() == flags


def test_a_figure_off_its_scale_is_named() -> None:
    assert figure_flags({"rougeL": 754.0}, Scoring(("rouge",)).scales) == {"off_scale": "rougeL 754 is not a fraction"}


LOSSES = [
    ([(None, 0.7), (0.6, 0.5), (0.3, 0.9)], False),
    ([(None, 0.7), (0.6, 0.5), (0.8, 0.6)], True),
    ([(None, 0.7), (0.0100, 0.1), (0.0101, 0.05)], False),  # near 0 already
    ([(None, 0.7), (0.6, 0.7)], False),  # the only epoch has no earlier loss
    ([(None, 0.7), (0.6, 0.5), (0.6, 0.6)], False),
    ([(None, 0.5), (0.6, 0.5000001)], True),
]


@pytest.mark.parametrize(("losses", "diverges"), LOSSES)
def test_losses(losses: list[tuple[float | None, float]], diverges: bool) -> None:
    assert bool(loss_flags(losses)) == diverges


@pytest.mark.parametrize(("given", "is_said"), [(0, False), (10, False), (11, True)])
def test_examples_that_are_given_away_are_counted_where_they_are_not_by_chance(given: int, is_said: bool) -> None:
    none = np.zeros(100, bool)
    task: Any = SimpleNamespace(split="dev", given_how="lie in a text of train", shared=none, shared_with_dev=none)
    task.given = np.arange(100) < given
    said = {"dev_given_away": "11 of 100 examples of dev lie in a text of train"}
    assert overlap_flags(task) == (said if is_said else {})


def test_questions_on_a_passage_of_the_training_data_are_given_away() -> None:
    """Case and spaces make no other passage; one question of ten may be on one by chance."""

    def questions(text: str, others: int) -> list[Question]:
        passages = ["Ada met  BOB.", *(f"Eve met {number}." for number in range(others))]
        return [Question(passage, passage, text, ()) for passage in passages]

    train = [Question("train", "Ada met Bob.", "Who?", ())]
    dev, test = questions("Whom?", 9), questions("When?", 8)
    assert overlap_flags(QuestionAnsweringTask(train, dev)) == {}
    said = {"test_given_away": "1 of 9 examples of test are on a passage of train"}
    assert overlap_flags(QuestionAnsweringTask(train, dev, test)) == said
