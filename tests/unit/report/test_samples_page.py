import pandas as pd
import pytest
from retrace.report.samples import answered_table, classified_table, sample_places

from retrace.datasets.examples import Example
from retrace.datasets.squad import Answer, Question


@pytest.mark.parametrize(
    ("total", "first", "places"),
    [(12, None, [0, 2, 4, 6, 8, 10]), (4, None, [0, 1, 2, 3]), (10, 3, [0, 1, 2]), (2, 3, [0, 1])],
)
def test_samples_are_spread_or_the_first(total: int, first: int | None, places: list[int]) -> None:
    assert sample_places(total, first) == places


def test_examples_and_questions_stand_beside_what_was_said() -> None:
    examples = [Example("text 0", None, 0), Example("text 1", "more", 1), Example("text 2", None, 0)]
    logits = pd.DataFrame({"logit_0": [0.0, 0.0, 1.0], "logit_1": [1.0, 1.0, 0.0]})
    table = classified_table(examples, ["bad", "good"], {"full": logits}, 2)
    assert table.rows == [("text 0", "bad", "good"), ("text 1 / more", "good", "good")]
    questions = [Question("a", "T", "A passage", "Who?", (Answer("Ada", 0),)), Question("b", "T", "More", "When?", ())]
    answers = pd.DataFrame({"id": ["a", "b"], "text": ["Ada", "x"], "score": 0.0, "null_score": [None, 1.0]})
    table = answered_table(questions, {"full": answers}, None)
    assert table.rows == [("Who?", "A passage", "Ada", "Ada"), ("When?", "More", "(no answer)", "(no answer)")]
