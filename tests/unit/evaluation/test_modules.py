"""The metrics as users of `evaluate` load them: from the file, without a network."""

import socket
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import Mock

import pytest

from retrace.core.errors import InputError
from retrace.core.settings import plugin_names
from retrace.evaluation.outcomes import METRICS
from tests.toy import ROOT

Load = Callable[[str], Any]
FILE = str(ROOT / "retrace" / "evaluation" / "hf_module.py")
ANSWERS, GOLDS = ["Ada", ""], [["Ada Lund", "Ada"], []]
ROWS = [
    {"id": "a", "prediction_text": "Ada", "no_answer_probability": 0.1},
    {"id": "b", "prediction_text": "hall", "no_answer_probability": 0.7},
]
REFERENCES = [
    {"id": "a", "answers": {"text": ["Ada Lund", "Ada"], "answer_start": [0, 0]}},
    {"id": "b", "answers": {"text": [], "answer_start": []}},
]


@pytest.fixture(scope="module")
def evaluate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The library, with its files in a folder of the test and no way out."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HOME", str(tmp_path_factory.mktemp("home")))
        patch.setattr(socket.socket, "connect", Mock(side_effect=AssertionError("nothing may need a network")))
        import evaluate

        yield evaluate


@pytest.fixture
def load(evaluate: ModuleType, tmp_path: Path) -> Load:
    """A metric by its name."""
    return partial(evaluate.load, FILE, cache_dir=str(tmp_path))


def test_a_metric_describes_itself(load: Load) -> None:
    metric = load("rouge")
    assert (metric.name, set(metric.features[0])) == ("rouge", {"predictions", "references"})
    assert metric.description.startswith("ROUGE-1, ROUGE-2")
    assert metric.citation.startswith("Lin 2004")
    assert "lists of right answers" in metric.inputs_description


def test_squads_own_format_and_plain_texts(load: Load) -> None:
    metric = load("squad_v2")
    plain = metric.compute(predictions=ANSWERS, references=GOLDS)
    assert plain["exact_match"] == plain["NoAns_f1"] == 100.0
    assert "best_f1" not in plain
    answered = metric.compute(predictions=ROWS, references=REFERENCES)
    assert answered.items() >= {"exact_match": 50.0, "best_exact_match": 100.0, "best_exact_match_thresh": 0.1}.items()
    assert metric.compute(predictions=ROWS, references=REFERENCES, no_answer_threshold=0.5)["exact_match"] == 100.0
    above_default = [ROWS[0], {**ROWS[1], "no_answer_probability": 1.5}]
    assert metric.compute(predictions=above_default, references=REFERENCES)["exact_match"] == 100.0


def test_answers_belong_to_questions_by_their_id(load: Load) -> None:
    metric = load("squad_v2")
    in_order = metric.compute(predictions=ROWS, references=REFERENCES)
    assert metric.compute(predictions=ROWS, references=REFERENCES[::-1]) == in_order
    with pytest.raises(InputError, match="of different questions: b is only predicted"):
        metric.compute(predictions=ROWS, references=[REFERENCES[0], {**REFERENCES[1], "id": "c"}])
    with pytest.raises(InputError, match="no_answer_probability: nan is not allowed; expected a finite number"):
        metric.compute(predictions=[{**ROWS[0], "no_answer_probability": float("nan")}, ROWS[1]], references=REFERENCES)
    with pytest.raises(InputError, match="of different questions"):
        metric.compute(predictions=[ROWS[0], ROWS[0]], references=REFERENCES)


WRONG_CLASSES = [
    ([[2.5, -1.5], [0.4, 0.6]], [0, 1], r"predictions: \[2.5, -1.5\] is not allowed; expected probabilities"),
    ([[0.9, 0.1], [4.0, 6.0]], [0, 1], r"predictions: \[4.0, 6.0\] is not allowed"),
    ([[0.9, 0.1], [0.4, 0.6]], [1, 2], "references: 1 to 2; expected numbers of 2 classes from 0"),
    ([0, -1], [0, 1], "predictions: -1 to 0; expected numbers of 2 classes from 0"),
    ([[0.9, 0.1], [1.0]], [0, 1], "predictions: expected equally many probabilities for every example"),
    ([0, 1], [0, None], "references: expected one for every example"),
    ([0.9, 0.2], [1, 0], "predictions: 0.9 is not allowed; expected numbers of classes"),
    ([1, 0], [0.9, 0.2], "references: 0.9 is not allowed; expected numbers of classes"),
    ([float("nan"), 0], [1, 0], "predictions: nan is not allowed"),
]


@pytest.mark.parametrize(("rows", "labels", "said"), WRONG_CLASSES)
def test_what_is_no_probability_or_class_is_refused(load: Load, rows: list[Any], labels: list[int], said: str) -> None:
    with pytest.raises(InputError, match=said):
        load("calibration").compute(predictions=rows, references=labels)


def test_batches_and_combinations(evaluate: ModuleType, load: Load) -> None:
    every = evaluate.combine([load(name) for name in ("squad_v2", "meteor", "bleu", "rouge")])
    for answer, golds in zip(ANSWERS, GOLDS, strict=True):
        every.add_batch(predictions=[answer], references=[golds])
    found = every.compute()
    assert found.items() >= {"total": 2, "rouge1": 1.0, "bleu_precision_1": 100.0}.items()
    assert any(name.startswith("meteor") for name in found)


def test_classes_and_probabilities(load: Load) -> None:
    assert load("accuracy").compute(predictions=[0, 2], references=[1, 2]) == {"accuracy": 0.5}
    sure = {"predictions": [[0.9, 0.1], [0.4, 0.6], [1.0, 0.0]], "references": [0, 1, 0]}
    assert load("accuracy").compute(**sure) == {"accuracy": 1.0}
    assert load("calibration").compute(**sure) == {"expected_calibration_error": pytest.approx((0.1 + 0.4) / 3)}


def test_an_unknown_name_says_which_are_known(load: Load) -> None:
    known = ", ".join(plugin_names(METRICS))
    with pytest.raises(InputError, match=f"'blue' is not allowed; expected one of {known}"):
        load("blue")
