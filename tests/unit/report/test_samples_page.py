import pytest

from retrace.datasets.examples import Example
from retrace.datasets.squad import Answer, Question
from retrace.report.data import answered_table, classified_table
from retrace.report.settings import sample_places


@pytest.mark.parametrize(
    ("total", "first", "places"),
    [(12, None, [0, 2, 4, 6, 8, 10]), (4, None, [0, 1, 2, 3]), (10, 3, [0, 1, 2]), (2, 3, [0, 1])],
)
def test_samples_are_spread_or_the_first(total: int, first: int | None, places: list[int]) -> None:
    assert sample_places(total, first) == places


def test_examples_and_questions_stand_beside_what_was_said() -> None:
    examples = [Example(f"text {number}", None, number % 2) for number in range(4)]
    table = classified_table(examples, ["bad", "good"], {"full": [1, 1, 0, 0]}, [0, 3])
    assert table.rows == [("text 0", "bad", "good"), ("text 3", "good", "bad")]
    questions = [Question("a", "T", "A passage", "Who?", (Answer("Ada", 0),)), Question("b", "T", "More", "When?", ())]
    table = answered_table(questions, {"full": {"a": "Ada"}}, [0, 1])
    assert table.rows == [("Who?", "A passage", "Ada", "Ada"), ("When?", "More", "(no answer)", "(no answer)")]
