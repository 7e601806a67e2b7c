"""Cases worked by hand after the official evaluation script, version 2.0."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.corpus.squad import Answer, Question
from stages.metrics.scores.squad_v2 import exact_match, normalised, overlap_f1, score


def _question(key: str, *answers: str) -> Question:
    return Question(key, "T", "", "?", tuple(Answer(text, 0) for text in answers))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("The  Ada-Lund, an A.I.!", "adalund ai"), ("a theatre", "theatre"), ("the", ""), ("Écu", "écu"), ("", "")],
)
def test_normalising(text: str, expected: str) -> None:
    assert normalised(text) == expected


@pytest.mark.parametrize(
    ("gold", "answer", "exact", "f1"),
    [
        (["Ada Lund"], "ada lund.", 1, 1.0),
        (["Ada Lund"], "Ada", 0, 2 / 3),
        (["Ada Lund", "Lund"], "lund", 1, 1.0),
        (["in 1601"], "the year 1601 was", 0, 0.4),
        (["red red blue"], "red blue blue", 0, 2 / 3),
        (["Ada"], "", 0, 0.0),
        ([""], "", 1, 1.0),
        ([""], "Ada", 0, 0.0),
        (["Ada"], "the", 0, 0.0),
    ],
)
def test_one_answer(gold: list[str], answer: str, exact: int, f1: float) -> None:
    assert exact_match(gold, answer) == exact
    assert overlap_f1(gold, answer) == pytest.approx(f1)


def test_a_data_set() -> None:
    questions = [_question("a", "Ada Lund"), _question("b", "1601", "the year 1601"), _question("c"), _question("d")]
    scores = score(questions, {"a": "Ada", "b": "1601", "c": "", "d": "Ada"})
    assert scores == pytest.approx(
        {
            "exact": 50.0, "f1": 100 * (2 / 3 + 1 + 1) / 4, "total": 4,
            "HasAns_exact": 50.0, "HasAns_f1": 100 * (2 / 3 + 1) / 2, "HasAns_total": 2,
            "NoAns_exact": 50.0, "NoAns_f1": 50.0, "NoAns_total": 2,
        }
    )  # fmt: skip


def test_only_predicted_questions_are_scored() -> None:
    assert score([_question("a", "x"), _question("b", "y")], {"a": "x", "z": "?"}) == {
        "exact": 100.0, "f1": 100.0, "total": 1, "HasAns_exact": 100.0, "HasAns_f1": 100.0, "HasAns_total": 1,
    }  # fmt: skip
    assert score([_question("a", "x")], {}) == {"total": 0}


@given(st.text(max_size=30), st.text(max_size=30))
def test_f1_is_symmetric_bounded_and_one_for_a_match(gold: str, answer: str) -> None:
    f1 = overlap_f1([gold], answer)
    assert 0 <= f1 <= 1
    assert f1 == pytest.approx(overlap_f1([answer], gold))
    assert f1 >= exact_match([gold], answer)
