from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from retrace.evaluation.flags import decision_flags, figure_flags, loss_flags, overlap_flags
from retrace.evaluation.outcomes import Answered, Classified, Scoring
from retrace.statistics.scales import Flags

SCALES = {
    "accuracy": "fraction", "precision": "fraction", "recall": "fraction", "matthews": "correlation",
    "exact_match": "percentage", "f1": "percentage", "best": "score",
}  # fmt: skip


def test_the_same_decision_for_all() -> None:
    labels = np.array([0, 1, 1])
    said = "all 3 examples are called yes"
    assert decision_flags(Classified(("no", "yes"), labels, np.ones(3, int))) == {"one_class_only": said}
    assert decision_flags(Classified(("no", "yes"), labels, labels)) == {}
    golds = (("Ada",), ())
    assert decision_flags(Answered(golds, ("", ""))).keys() == {"always_empty"}
    assert decision_flags(Answered(golds, ("the", "the"))).keys() == {"always_the_same"}
    assert decision_flags(Answered(golds, ("the", ""))) == {}


@pytest.mark.parametrize(
    ("figures", "flags"),
    [
        ({"accuracy": 1.0, "exact_match": 100.0, "f1": 100.0, "matthews": -1.0, "best": -7.5}, set()),
        ({"accuracy": 1.01}, {"off_scale"}),
        ({"accuracy": float("nan")}, {"off_scale"}),
        ({"matthews": -1.1}, {"off_scale"}),
        ({"f1": 754.0, "exact_match": 100.0}, {"off_scale"}),
        ({"f1": 50.0, "exact_match": 60.0}, {"f1_below_exact_match"}),
        ({"f1": 30.0, "exact_match": 2.0}, {"f1_without_exact_match"}),
        ({"f1": 12.0, "exact_match": 0.0}, set()),
        ({"accuracy": 0.6, "precision": 0.6, "recall": 1.0}, {"recall_without_accuracy"}),
        ({"accuracy": 0.89, "precision": 0.885, "recall": 1.0}, set()),  # 850 of 850, and 40 of the 150 others
        ({"accuracy": 1.0, "precision": 1.0, "recall": 1.0}, set()),
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
    ],
)
def test_figures(figures: dict[str, float], flags: set[str]) -> None:
    assert figure_flags(figures, SCALES).keys() == flags


def test_a_figure_off_its_scale_is_named() -> None:
    assert figure_flags({"rougeL": 754.0}, Scoring(("rouge",)).scales) == {"off_scale": "rougeL 754 is not a fraction"}


@pytest.mark.parametrize(
    ("losses", "diverges"),
    [
        ([(None, 0.7), (0.6, 0.5), (0.3, 0.9)], False),
        ([(None, 0.7), (0.6, 0.5), (0.8, 0.6)], True),
        ([(None, 0.7), (0.6, 0.8), (0.3, 0.9)], True),
        ([(None, 0.7), (float("inf"), 0.6)], True),
        ([(None, 0.7), (0.6, float("nan"))], True),
        ([(None, 0.7), (0.6, 0.7)], False),
        ([(None, 0.7), (0.9, 0.6)], False),  # of one epoch there is none before
        ([(None, 0.7), (0.6, 0.5), (0.6, 0.6)], False),
        ([(None, 0.5), (0.6, 0.5000001)], True),
    ],
)
def test_losses(losses: list[tuple[float | None, float]], diverges: bool) -> None:
    assert bool(loss_flags(losses)) == diverges


def _overlaps(shared: list[int], given: list[int]) -> Flags:
    task: Any = SimpleNamespace(split="dev", given_how="lie in a text of train")
    task.shared = task.shared_with_dev = np.array(shared, bool)
    task.given = np.array(given, bool)
    return overlap_flags(task)


def test_examples_that_are_given_away_are_counted() -> None:
    assert _overlaps([0, 0, 0, 0], [0, 0, 0, 0]) == {}
    given = "3 of 4 examples of dev lie in a text of train"
    assert _overlaps([0, 0, 0, 0], [1, 1, 1, 0]) == {"dev_given_away": given}
    assert _overlaps([0] * 100, [1] * 10 + [0] * 90) == {}  # by chance
    assert _overlaps([0] * 100, [1] * 11 + [0] * 89).keys() == {"dev_given_away"}
