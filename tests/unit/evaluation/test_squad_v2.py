"""Cases worked by hand after the official evaluation script, version 2.0."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrace.evaluation.metrics.squad_v2 import compare, normalised, resampled, score
from retrace.evaluation.outcomes import Answered


@pytest.mark.parametrize(
    ("text", "expected"),
    [("The  Ada-Lund, an A.I.!", "adalund ai"), ("a theatre", "theatre"), ("the", ""), ("Écu", "écu"), ("", "")],
)
def test_normalising(text: str, expected: str) -> None:
    assert normalised(text) == expected


@pytest.mark.parametrize(
    ("gold", "answer", "exact", "f1"),
    [
        (("Ada Lund",), "ada lund.", 1, 1.0),
        (("Ada Lund",), "Ada", 0, 2 / 3),
        (("Ada Lund", "Lund"), "lund", 1, 1.0),
        (("in 1601",), "the year 1601 was", 0, 0.4),
        (("red red blue",), "red blue blue", 0, 2 / 3),
        (("Ada",), "", 0, 0.0),
        ((), "", 1, 1.0),
        (("",), "Ada", 0, 0.0),
        (("Ada",), "the", 0, 0.0),
        (("the", "Ada"), "the", 0, 0.0),  # what is empty after normalising is no right answer
        (("the", "?"), "the", 1, 1.0),  # unless all are
    ],
)
def test_one_answer(gold: tuple[str, ...], answer: str, exact: int, f1: float) -> None:
    assert compare(gold, answer) == (exact, pytest.approx(f1))


def test_kinds_of_questions_that_do_not_occur_have_no_figures() -> None:
    assert score(Answered((("x",),), ("x",))) == {
        "exact_match": 100.0, "f1": 100.0, "total": 1,
        "HasAns_exact_match": 100.0, "HasAns_f1": 100.0, "HasAns_total": 1,
    }  # fmt: skip
    assert score(Answered((), ())) == {}


def test_the_best_threshold_by_hand() -> None:
    # Answered from the left: right, wrong where there is no answer, half right, an empty span.
    golds, spans = (("Ada",), (), ("1601 x y",), ()), ("Ada", "hall", "1601", "")
    outcome = Answered(golds, ("", "", "", ""), spans, np.array([-2.0, 0.5, 0.7, 3.0]))
    figures = score(outcome)
    assert figures["exact_match"] == 50.0
    assert figures["best_exact_match"] == figures["best_f1"] == 75.0  # 2 abstained rightly, 1 answered
    assert figures["best_exact_match_thresh"] == figures["best_f1_thresh"] == -2.0
    # With the first question twice and the second never, it pays to answer the third.
    weights = np.array([[2.0, 0.0, 1.0, 1.0]])
    assert resampled(outcome)(weights)["best_f1"] == pytest.approx([100 * (1 + 2 + 0.5) / 4])


def test_abstaining_always_has_the_threshold_0() -> None:
    outcome = Answered((("Ada",), ()), ("", ""), ("hall", "hall"), np.array([-2.0, -1.0]))
    figures = score(outcome)
    assert (figures["best_exact_match"], figures["best_exact_match_thresh"]) == (50.0, 0.0)
    assert resampled(outcome)(np.ones((2, 2)))["best_exact_match"].tolist() == [50.0, 50.0]


@given(st.text(max_size=30), st.text(max_size=30))
def test_f1_is_symmetric_bounded_and_one_for_a_match(gold: str, answer: str) -> None:
    exact, f1 = compare((gold,), answer)
    assert 0 <= f1 <= 1
    assert f1 == pytest.approx(compare((answer,), gold)[1])
    assert f1 >= exact
