"""`retrace score`: anyone's predictions."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from retrace.evaluation.metrics import accuracy
from retrace.statistics.intervals import wilson_interval
from retrace.statistics.scales import Figure
from tests.commands import Done, refused, retrace

WHO = {"id": "a", "question": "Who?", "answers": [{"text": "Ada Lund", "answer_start": 0}]}
WHY = {"id": "b", "question": "Why?", "answers": [], "is_impossible": True}
DATASET = {"data": [{"title": "T", "paragraphs": [{"context": "Ada Lund built it in 1601.", "qas": [WHO, WHY]}]}]}
WHOLE = {"a": "Ada Lund", "b": "1601"}


pytestmark = pytest.mark.usefixtures("here")


def _squad(predictions: object, *options: str, numbers: object = None) -> Done:
    """Score answers to two questions; `numbers` say how surely each has none."""
    for name, content in (("dataset", DATASET), ("predictions", predictions), ("na_prob", numbers)):
        Path(f"{name}.json").write_text(json.dumps(content))
    given = ("--na-prob", "na_prob.json") if numbers else ()
    return retrace("score", "squad", "dataset.json", "predictions.json", *given, *options)


def _classes(gold: str, given: str, *options: str) -> Done:
    """Score predicted classes in a csv against gold classes in a tsv."""
    Path("gold.tsv").write_text(gold)
    Path("given.csv").write_text(given)
    return retrace("score", "classification", "gold.tsv", "given.csv", *options)


def _column(*labels: object) -> str:
    return "\n".join(["label", *map(str, labels), ""])


def _scores(done: Done) -> dict[str, float]:
    assert done.code == 0, done.err
    return json.loads(done.out)


def _refusal(done: Done) -> str:
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    return done.err


def test_scores_of_answers() -> None:
    scores = _scores(_squad({"a": "Ada", "b": ""}))
    assert (scores["exact_match"], scores["f1"]) == pytest.approx((50.0, 100 * (2 / 3 + 1) / 2))
    assert scores["NoAns_exact_match"] == 100.0
    scores: dict = _scores(_squad({"a": "Ada Lund", "b": "x"}, "--all", "--intervals"))
    assert (scores["rougeL"], scores["bleu_precision_2"]) == (1.0, 100.0)
    scales = scores["scales"]
    assert (scales["rougeL"], scales["bleu_precision_2"], scales["total"]) == ("fraction", "percentage", "count")
    assert str(scores["bleu_signature"]).startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp")
    assert any(name.startswith("meteor") for name in scores)
    bounds = wilson_interval(0.5, 2)
    assert scores["intervals"]["exact_match"] == pytest.approx({name: 100 * bounds[name] for name in bounds})


def test_intervals_are_over_passages_that_have_several_questions() -> None:
    """Two passages, of four and of two questions, which are answered right in one only: little is known of 4 of 6."""
    passages = [("Ada met Bob", range(4)), ("Eve met Bob", range(4, 6))]
    document = {"data": [{"paragraphs": [
        {"context": text, "qas": [{"id": str(n), "question": "?", "answers": [{"text": "Bob", "answer_start": 8}]}
                                  for n in numbers]} for text, numbers in passages]}]}  # fmt: skip
    Path("data.json").write_text(json.dumps(document))
    Path("given.json").write_text(json.dumps({str(n): "Bob" if n < 4 else "Eve" for n in range(6)}))
    scores: dict = _scores(retrace("score", "squad", "data.json", "given.json", "--intervals"))
    alone = wilson_interval(2 / 3, 6)
    assert scores["intervals"]["exact_match"]["low"] < 100 * alone["low"] / 2


def test_probabilities_of_no_answer_take_answers_back() -> None:
    numbers = {"b": 0.75, "a": 0.25}
    scores = _scores(_squad(WHOLE, numbers=numbers))
    assert (scores["exact_match"], scores["best_exact_match"], scores["best_exact_match_thresh"]) == (50.0, 100.0, 0.25)
    assert _scores(_squad(WHOLE, "--na-prob-thresh", "0.5", numbers=numbers))["exact_match"] == 100.0


@pytest.mark.parametrize(("threshold", "numbers"), [("nan", {"a": 0.1, "b": 0.2}), ("0.5", None)])
def test_a_threshold_needs_to_be_a_number_and_probabilities(threshold: str, numbers: object) -> None:
    said = "error: --na-prob-thresh: expected a finite number, together with --na-prob\n"
    assert _refusal(_squad(WHOLE, "--na-prob-thresh", threshold, numbers=numbers)) == said


@pytest.mark.parametrize(("order", "best"), [("ab", 100.0), ("ba", 50.0)])
def test_ties_are_broken_by_the_order_of_the_file(order: str, best: float) -> None:
    assert _scores(_squad(WHOLE, numbers=dict.fromkeys(order, 0.5)))["best_exact_match"] == best


@pytest.mark.parametrize("missing", ["a", "b"])
def test_questions_without_a_prediction_are_said(missing: str) -> None:
    predictions = {name: "" for name in "ab" if name != missing}
    said = f"1 of 2 questions have no prediction, the first of them {missing}"
    refused = f"error: predictions.json: {said}; with --allow-missing only the others are scored\n"
    assert _refusal(_squad(predictions)) == refused
    done = _squad(predictions, "--allow-missing")
    assert _scores(done)["total"] == 1
    assert done.err.startswith(f"warning: missing: {said}; only the others are scored\n")


def test_predictions_of_no_question_are_said() -> None:
    done = _squad({"a": "Ada", "b": "", "z": "", "y": "x"})
    assert _scores(done)["total"] == 2
    assert done.err == "warning: unknown: 2 of 4 predictions have an unknown question id, the first of them z\n"


WRONG_ANSWERS = [
    (["a"], None, "predictions.json: expected one object of question ids, each with a text\n"),
    ({"a": "x", "b": 3}, None, "predictions.json: question b: 3 is not allowed; expected a text\n"),
    ({"z": "x"}, None, "predictions.json: no prediction for any question"),
    (WHOLE, {"a": 0.5}, "na_prob.json: no number for question b, which has a prediction"),
    (WHOLE, {"a": "0.5", "b": 1}, "na_prob.json: question a: '0.5' is not allowed; expected a number\n"),
    (WHOLE, {"a": float("nan"), "b": 1}, "na_prob.json:1: not json: NaN is not a number"),
    (WHOLE, {"a": True, "b": False}, "na_prob.json: question a: true is not allowed; expected a number\n"),
    (WHOLE, [0.5], "na_prob.json: expected one object of question ids, each with a number\n"),
]


@pytest.mark.parametrize(("predictions", "numbers", "message"), WRONG_ANSWERS)
def test_wrong_answers_and_probabilities_are_one_line(predictions: object, numbers: object, message: str) -> None:
    assert _refusal(_squad(predictions, numbers=numbers)).startswith(f"error: {message}")


def test_scores_of_classes_with_their_probabilities() -> None:
    gold = "text\tmood\na\tgood\nb\tbad\nc\tgood\nd\tbad\n"
    given = "said,good,bad\ngood,0.9,0.1\nbad,0.2,0.8\nbad,0.4,0.6\nbad,0.3,0.7\n"
    scores: dict = _scores(_classes(gold, given, "--label", "mood", "--prediction", "said", "--intervals"))
    assert (scores["accuracy"], scores["recall_macro"], scores["roc_auc"]) == (0.75, 0.75, 1.0)
    assert scores["intervals"]["accuracy"] == wilson_interval(0.75, 4)


def test_one_class_for_all_is_said_to_be() -> None:
    done = _classes(_column(1, 0), _column(1, 1))
    assert _scores(done)["recall"] == 1.0
    assert "warning: one class only: all 2 examples are predicted as 1\n" in done.err


WRONG_CLASSES = [
    ("label\n1\n", "given.csv: 1 rows, but "),
    ("label,0,1\n1,0.5,half\n0,1,0\n", "given.csv:2: expected probabilities in 0, 1; 1 has half"),
    ("label,0,1\n1,0.5,0.5\n0,-1,2\n", "given.csv:3: expected probabilities in 0, 1"),
    ("label,0,1\n1,0.5,0.5\n0,nan,1\n", "given.csv:3: expected probabilities in 0, 1; 0 has nan"),
    ("label,0,1\n1,.5,.5\n0,.5,.4\n", "given.csv:3: expected probabilities in 0, 1; they sum to 0.9 and not to 1"),
    ("label,0,1\n1,50,50\n0,80,20\n", "given.csv:2: expected probabilities in 0, 1; they sum to 100 and not to 1"),
    ("label,0,1,sure\n1,0.5,0.5,1\n0,0.5,0.3,1\n", "given.csv:3: expected probabilities in 0, 1; they sum to 0.8"),
    ("label,0,1,1.0\n1,.5,.25,.25\n0,.5,.25,.25\n", "given.csv:2: two columns are called 1"),
    ("label\n", "given.csv: it contains no row"),
    ("Label\n1\n0\n", "given.csv:2: no column 'label'; the columns are: Label; the column is set by --prediction\n"),
]


@pytest.mark.parametrize(("given", "said"), WRONG_CLASSES)
def test_wrong_classes_are_one_line(given: str, said: str) -> None:
    assert _refusal(_classes(_column(1, 0), given)).startswith(f"error: {said}")


def test_truth_values_are_no_probabilities() -> None:
    Path("gold.tsv").write_text(_column(1, 0))
    Path("given.jsonl").write_text('{"label": 1, "0": false, "1": true}\n{"label": 0, "0": 0.7, "1": 0.3}\n')
    said = _refusal(retrace("score", "classification", "gold.tsv", "given.jsonl"))
    assert said == "error: given.jsonl:1: expected probabilities in 0, 1; 0 has False\n"


def test_a_class_that_never_occurs_keeps_its_probabilities() -> None:
    done = _classes(_column(*"aba"), "label,a,b,c,text\na,0.4,0.3,0.3,x\nb,0.25,0.45,0.3,x\nb,0.3,0.4,0.3,x\n")
    scores = _scores(done)
    # Confidences 0.4 and 0.4 (one of two right) are in one bin, 0.45 (right) in the next.
    assert scores["expected_calibration_error"] == pytest.approx(2 / 3 * (0.5 - 0.4) + 1 / 3 * (1 - 0.45))
    assert "roc_auc" not in scores
    assert done.err == "warning: no roc auc: gold.tsv has no c\n"
    improbable = _classes(_column(*"ab"), "label,a,b,c\na,0.7,0.291,0.009\nb,0.2,0.798,0.002\n")
    assert "roc_auc" not in _scores(improbable)


def test_another_column_of_numbers_is_no_class() -> None:
    done = _classes(_column(*"ab"), "label,right,a,b,sure\na,1,0.67,0.33,0.67\nb,0,0.333,0.666,0\n")
    assert (_scores(done)["roc_auc"], done.err) == (1.0, "")


def test_the_area_is_that_of_the_numbers_in_the_file() -> None:
    generator = np.random.default_rng(0)
    labels = generator.integers(3, size=300)
    # Numbers of single precision do not sum to 1 exactly; divided by their sum some would change places.
    found = generator.dirichlet(np.ones(3), 300).round(3).astype(np.float32).astype(np.float64)
    given = pd.DataFrame(found, columns=["0.0", "1.0", "2.0"]).assign(label=found.argmax(axis=1).astype(float))
    pd.DataFrame({"label": labels}).to_json("gold.jsonl", orient="records", lines=True)
    given.to_json("given.jsonl", orient="records", lines=True, double_precision=15)
    done = retrace("score", "classification", "gold.jsonl", "given.jsonl")
    scores = _scores(done)
    expected = np.mean([roc_auc_score(labels == c, found[:, c]) for c in range(3)])
    assert scores["roc_auc"] == pytest.approx(expected, abs=1e-12)
    assert scores["accuracy"] == np.mean(labels == found.argmax(axis=1))
    assert done.err == ""


SAME = {
    "0.0 1.0 1.0": "0 1 0",
    "+1 -1 -1": "1.0 -1 1",
    "True False False": "true FALSE 1",
    "0 1 1": "-0.0 1.0 0.0",
    "\u00e9 bar bar": "e\u0301 bar \u00e9",
}


@pytest.mark.parametrize(("gold", "given"), SAME.items())
def test_numbers_truth_and_accents_are_the_same_classes_however_written(gold: str, given: str) -> None:
    assert _scores(_classes(_column(*gold.split()), _column(*given.split())))["accuracy"] == pytest.approx(2 / 3)


def test_the_favourable_class_is_the_larger_number() -> None:
    assert _scores(_classes(_column(2, 10, 10, 2), _column(2, 10, 2, 2)))["recall"] == 0.5


@pytest.mark.parametrize("given", ["positive negative", "true false", "Positive Negative"])
def test_classes_that_have_nothing_in_common_are_one_line(given: str) -> None:
    called = ", ".join(sorted(given.split()))
    said = f"error: given.csv: no class in common: its classes are {called}, those of gold.tsv 0, 1\n"
    assert _refusal(_classes(_column(1, 0), _column(*given.split()))) == said


def test_a_predicted_class_that_is_never_right_is_named() -> None:
    done = _classes(_column("yes", "no", "no"), "label,yes,no\nyes,1,0\nmaybe,0,1\nmaybe,0,1\n")
    assert _scores(done)["accuracy"] == pytest.approx(1 / 3)
    unknown = "warning: unknown class: 2 of 3 predictions are maybe, which gold.tsv does not have\n"
    assert done.err == f"{unknown}warning: no probabilities: no column is called maybe\n"


def test_an_unknown_ending_is_told_the_known_ones() -> None:
    Path("gold.txt").write_text(_column(1))
    said = "error: gold.txt: format 'txt' is not allowed; expected one of csv, jsonl, parquet, tsv, xml\n"
    assert refused("score", "classification", "gold.txt", "gold.txt") == said


@pytest.mark.parametrize(
    ("name", "said"), [("none", "no such file"), ("none.txt", "no such file"), ("f", "it is a folder; expected a file")]
)
def test_a_file_that_is_not_there_is_not_asked_for_its_ending(name: str, said: str) -> None:
    Path("gold.tsv").write_text(_column(1))
    Path("f").mkdir()
    assert refused("score", "classification", "gold.tsv", name) == f"error: {name}: {said}\n"


def test_labels_and_probabilities_of_any_length_are_read() -> None:
    long = "9" * 5000
    assert _scores(_classes(_column(long, 1), _column(long, 1)))["accuracy"] == 1.0
    said = "error: given.csv:3: expected probabilities in x, y; y has 99999"
    assert _refusal(_classes(_column("x", "y"), f"label,x,y\nx,1,0\ny,0,{long}\n")).startswith(said)


def test_where_one_class_is_right_all_predictions_may_be_wrong() -> None:
    done = _classes(_column(1, 1), _column(0, 0))
    assert _scores(done)["accuracy"] == 0.0
    assert "warning: unknown class: 2 of 2 predictions are 0, which gold.tsv does not have\n" in done.err


def test_numbers_of_other_questions_are_left_out() -> None:
    """Questions that the data set does not have and, with --allow-missing, questions without a prediction."""
    expected = _scores(_squad(WHOLE, numbers={"a": 0.25, "b": 0.75}))
    assert _scores(_squad(WHOLE | {"z": "x"}, numbers={"z": 0.5, "a": 0.25, "b": 0.75})) == expected
    assert _scores(_squad({"a": "Ada Lund"}, "--allow-missing", numbers={"a": 0.25, "b": 0.75}))["total"] == 1


def test_a_note_does_not_take_the_place_of_its_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    """A metric of one's own may give its note the name of its only figure."""
    monkeypatch.setattr(accuracy, "notes", lambda outcome: {"accuracy": "of all texts"}, raising=False)
    scores: dict = _scores(_classes(_column(1, 0), _column(1, 1)))
    assert (scores["accuracy"], scores["accuracy_note"]) == (0.5, "of all texts")


def test_a_metric_may_give_numbers_of_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the sum of an array is one, which json does not know."""
    monkeypatch.setattr(accuracy, "FIGURES", accuracy.FIGURES | {"errors": Figure("count", "neither")})
    errors = {"errors": np.array([0, 1]).sum()}
    monkeypatch.setattr(accuracy, "score", lambda outcome: errors, raising=False)
    scores = _scores(_classes(_column(1, 0), _column(1, 1)))
    assert (scores["accuracy"], scores["errors"]) == (0.5, 1)
