"""Each score by hand, against scikit-learn on random data, and its resampled form against repeated examples."""

import tracemalloc
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, matthews_corrcoef, precision_recall_fscore_support, roc_auc_score

from retrace.evaluation.metrics import accuracy, calibration, f1, matthews, precision, recall, roc_auc
from retrace.evaluation.outcomes import Classified, Scoring, figures, sum_to_one
from retrace.statistics.comparisons import compare, difference
from retrace.statistics.intervals import intervals, wilson_interval

METRICS = (accuracy, precision, recall, f1, matthews, roc_auc, calibration)
HAND = Classified(("no", "yes"), np.array([1, 1, 1, 0, 0]), np.array([1, 1, 0, 1, 0]))  # 2 hits, 1 missed, 1 false


@st.composite
def outcomes(draw: st.DrawFn) -> Classified:
    """Few or many classes, some of which may not occur; ties, certainty, and one row or several."""
    classes = draw(st.sampled_from([1, 2, 2, 2, 3, 3, 4, 4, 5, 30]))
    size = draw(st.integers(1, 60))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    probabilities = generator.dirichlet(np.full(classes, draw(st.sampled_from([0.01, 1.0]))), size)
    if draw(st.booleans()):  # ties
        probabilities = (probabilities * 4).round() + 1e-3
        probabilities /= probabilities.sum(axis=1, keepdims=True)
    if draw(st.booleans()):  # all or nothing
        probabilities = np.eye(classes)[probabilities.argmax(axis=1)]
    labels = generator.integers(draw(st.integers(1, classes)), size=size)
    if draw(st.booleans()) and size >= classes:
        labels[:classes] = np.arange(classes)
    predicted = probabilities.argmax(axis=1) if draw(st.booleans()) else generator.integers(classes, size=size)
    return Classified(tuple(map(str, range(classes))), labels, predicted, probabilities)


def test_by_hand() -> None:
    """3 hits, 1 missed, 2 false and 1 rightly no: precision, recall and F1 all differ."""
    outcome = Classified(HAND.classes, np.array([1, 1, 1, 1, 0, 0, 0]), np.array([1, 1, 1, 0, 1, 1, 0]))
    found = {name: value for metric in METRICS for name, value in figures(metric, outcome).items()}
    expected = {
        "accuracy": 4 / 7, "precision": 3 / 5, "recall": 3 / 4, "f1": 2 / 3, "f1_micro": 4 / 7,
        "recall_macro": (3 / 4 + 1 / 3) / 2, "matthews": (3 * 1 - 1 * 2) / np.sqrt(5 * 4 * 3 * 2),
    }  # fmt: skip
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    assert found.keys().isdisjoint({"roc_auc", "expected_calibration_error"})  # without probabilities


def _sure(labels: Sequence[int] | np.ndarray, chances: Sequence[float]) -> Classified:
    """All are given the second class, with these probabilities."""
    of = np.array(chances)
    return Classified(HAND.classes, np.array(labels), np.ones(len(of), int), np.stack([1 - of, of], axis=1))


def test_the_area_of_one_pair_in_the_wrong_order() -> None:
    assert roc_auc.score(_sure(HAND.labels, [0.9, 0.8, 0.3, 0.4, 0.1])) == {"roc_auc": pytest.approx(5 / 6)}


def test_calibration_by_hand() -> None:
    found = figures(calibration, _sure(HAND.labels, [0.95, 0.95, 0.65, 0.65, 0.65]))
    assert found == {"expected_calibration_error": pytest.approx(2 / 5 * 0.05 + 3 / 5 * (0.65 - 1 / 3))}
    # A sum of floats may be above 1; both are in the last bin.
    found = figures(calibration, _sure([0, 1], [np.nextafter(1.0, 2.0), 0.95]))
    assert found == {"expected_calibration_error": pytest.approx(0.975 - 0.5)}


def test_probabilities_sum_to_1_but_for_rounding_to_two_digits() -> None:
    few = np.array([[0.5, 0.51], [0.49, 0.5], [0.5, 0.5101], [0.4899, 0.5]])
    many = np.full((30, 2), 1 / 30) + np.eye(30, 2) * [0.1, 0.101]
    assert [sum_to_one(of).tolist() for of in (few, many.T)] == [[True, True, False, False], [True, False]]


@settings(max_examples=60)
@given(outcomes(), st.integers(0, 2**32))
def test_a_weight_is_a_repeated_example(outcome: Classified, seed: int) -> None:
    weights = np.random.default_rng(seed).integers(0, 4, size=len(outcome.labels))
    weights[0] += 1
    repeated = outcome.part(np.repeat(np.arange(len(outcome)), weights))
    for metric in METRICS:
        drawn = metric.resampled(outcome)(np.stack([np.ones(len(outcome)), weights]))
        computed = figures(metric, outcome).keys()
        assert drawn.keys() == (set() if metric is calibration else computed) <= metric.FIGURES.keys()
        for row, each in enumerate((outcome, repeated)):
            for figure, value in figures(metric, each).items() if drawn else ():
                assert drawn[figure][row] == pytest.approx(value, abs=1e-9), figure


def _area(outcome: Classified) -> float | None:
    """What scikit-learn says of the probabilities as they are; None if the data lacks a class."""
    assert outcome.probabilities is not None
    classes = len(outcome.classes)
    if len(np.unique(outcome.labels)) < max(classes, 2):
        return None
    scores = outcome.probabilities[:, 1] if classes == 2 else outcome.probabilities
    return float(roc_auc_score(outcome.labels, scores, multi_class="ovr"))


def _calibration_error(outcome: Classified) -> float:
    """Guo et al., bin by bin, as their own code has it."""
    assert outcome.probabilities is not None
    confidence = outcome.probabilities[np.arange(len(outcome.labels)), outcome.predicted]
    right, error = outcome.labels == outcome.predicted, 0.0
    for bin_ in range(15):
        held = (confidence > bin_ / 15) & (confidence <= (bin_ + 1) / 15) | (confidence == 0) & (bin_ == 0)
        if held.any():
            error += held.mean() * abs(right[held].mean() - confidence[held].mean())
    return error


@settings(max_examples=200)
@given(outcomes())
def test_scikit_learn_agrees(outcome: Classified) -> None:
    both, found = (outcome.labels, outcome.predicted), {}
    for metric in METRICS:
        found |= figures(metric, outcome)
    for metric in (precision, recall, f1):
        for name, share in metric.shares(outcome).items():
            assert share.value == pytest.approx(found[name], abs=1e-12)
    expected: dict[str, Any] = {"accuracy": accuracy_score(*both)}
    expected["expected_calibration_error"] = _calibration_error(outcome)
    for mean in [*(["binary"] if len(outcome.classes) == 2 else []), "macro", "micro", "weighted"]:
        options: Any = {"average": mean, "zero_division": 0}
        values, ending = precision_recall_fscore_support(*both, **options), "" if mean == "binary" else f"_{mean}"
        expected |= {name + ending: of for name, of in zip(("precision", "recall", "f1"), values[:3], strict=True)}
    expected |= {} if (area := _area(outcome)) is None else {"roc_auc": area}
    expected["matthews"] = matthews_corrcoef(*both) if len(np.union1d(*both)) > 1 else 0.0
    assert found == pytest.approx(expected, abs=1e-12)


def test_many_classes_take_memory_by_example_and_not_by_pair_of_classes() -> None:
    generator = np.random.default_rng(0)
    outcome = Classified(tuple(map(str, range(150))), *generator.integers(150, size=(2, 4500)))
    weights = np.ones((150, 4500))  # a confusion matrix for each resample would take 27e6 bytes
    tracemalloc.start()
    for metric in (precision, recall, f1, matthews):
        metric.resampled(outcome)(weights)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6


def _wrong_every(step: int, labels: np.ndarray) -> Classified:
    """One in `step` texts is given the next class."""
    wrong = np.arange(len(labels)) % step == 0
    return Classified(tuple("abcde"), labels, np.where(wrong, (labels + 1) % 5, labels))


def test_a_class_of_one_text_hides_no_more_than_its_weight() -> None:
    """One of 1,000 texts has the last of five classes; the models are right on roughly 9 and 6 of 10 texts."""
    labels = np.append(np.arange(999) % 4, 4)
    models = {"good": _wrong_every(9, labels), "poor": _wrong_every(3, labels)}
    good, poor = Scoring(("f1", "matthews")).scored(models, 1000, 1).values()
    widths = {name: ends["high"] - ends["low"] for name, ends in intervals([good]).items()}
    for name in ("f1_weighted", "matthews"):
        assert widths[name] < 0.06
        assert difference(name, [good], [poor]).p < 1e-10
    assert 0.1 < widths["f1_macro"] < 0.4


def test_rare_classes_make_a_mean_over_classes_uncertain() -> None:
    """Two of 100 texts are of the rare class: all right, or all but these; F1 of the class is 1 or 0."""
    labels = np.repeat([0, 1], [98, 2])
    models = {name: Classified(("a", "b"), labels, of) for name, of in (("both", labels), ("none", 0 * labels))}
    both, none = Scoring(("f1", "recall")).scored(models, 500, 1).values()
    many, few = ((1 - wilson_interval(1.0, count)["low"]) / 2 for count in (98, 2))
    assert intervals([both])["f1_macro"]["low"] == pytest.approx(1 - np.hypot(many, few))
    # Half of the difference of 1 in the rare class, of its two texts and four that count half.
    error = (np.var([0.5] * 5 + [0.0, 0.0, -0.5]) / 4) ** 0.5
    assert difference("recall_macro", [both], [none]).of_examples == pytest.approx(error)


def test_a_model_without_an_error_on_few_texts_is_as_uncertain_in_every_figure() -> None:
    """Twenty texts of thirty examples: little is known of others. The macro mean is of two classes that may vary."""
    scoring, labels = Scoring(("accuracy", "recall", "f1")), np.arange(600) % 2
    right = Classified(("no", "yes"), labels, labels)
    found = intervals([scoring.scored({"": right}, 100, 0, np.arange(600) // 30)[""]])
    of_texts = wilson_interval(1, 20)
    for figure in ("accuracy", "recall", "recall_weighted", "f1", "f1_weighted"):
        assert found[figure] == pytest.approx(of_texts)
    assert found["f1_macro"]["low"] == pytest.approx(1 - 0.5 * 2**0.5 * (1 - of_texts["low"]))


def test_figures_of_a_rare_class_are_uncertain() -> None:
    """Five of 500 texts, all right: Wilson's interval of 5 of 5, on each figure's scale."""
    labels = np.repeat([0, 1], [495, 5])
    right = Classified(("a", "b"), labels, labels, np.eye(2)[labels])
    (scored,) = Scoring(("recall", "f1", "matthews", "roc_auc")).scored({"": right}, 300, 1).values()
    found, low = intervals([scored]), wilson_interval(1.0, 5)["low"]
    assert [found[name]["low"] for name in ("recall", "f1", "roc_auc")] == pytest.approx([low] * 3)
    assert found["matthews"]["low"] == pytest.approx(2 * low - 1)


def test_models_that_decide_the_same_have_a_difference_that_could_be_shown() -> None:
    scoring = Scoring(("accuracy", "matthews"))
    one, other = scoring.scored({"a": HAND, "b": HAND}, 50, 1).values()
    found = {of.figure: of for of in compare({"a": [one], "b": [other]}, scoring.legend)}
    # As if they differed in one of five examples and two added: Student's t of four degrees of freedom. One of the
    # rarer class's two and these is half of a correlation: no difference would be large enough.
    assert found["accuracy"].detectable == pytest.approx((2.776445 + 0.940965) / 7)
    assert found["matthews"].detectable is None
    assert (found["accuracy"].test, found["accuracy"].p) == ("exact McNemar", 1.0)


def test_precision_of_a_class_that_is_never_predicted_counts_the_texts_of_the_class() -> None:
    """Nothing was predicted as b: its precision of 0 is as uncertain as a figure of its 20 texts, not of none."""
    labels = np.repeat([0, 1], [80, 20])
    found = precision.by_class(Classified(("a", "b"), labels, np.zeros(100, int)))["precision_macro"]
    assert (found.values.tolist(), found.examples.tolist(), found.classes) == ([0.8, 0.0], [100, 20], 2)


def test_f1_counts_texts_labelled_or_predicted_as_the_class() -> None:
    """Ten texts have the class, two of them are found, and one other text is predicted as the class."""
    labels, predicted = np.repeat([1, 0], [10, 90]), np.repeat([1, 0, 1, 0], [2, 8, 1, 89])
    assert f1.examples(Classified(("a", "b"), labels, predicted)) == {"f1": 11}


def test_f1_of_a_class_that_no_text_has_and_that_is_never_predicted_may_be_anything() -> None:
    nothing = Classified(("a", "b"), np.zeros(40, int), np.zeros(40, int))
    for clusters in (None, np.arange(40) // 4):
        (scored,) = Scoring(("f1",)).scored({"": nothing}, 100, 1, clusters).values()
        assert intervals([scored])["f1"] == {"low": 0.0, "high": 1.0}


@pytest.mark.parametrize("classes", ["a", "ab", "abc"])
def test_a_correlation_on_a_single_class_may_be_anything_however_many_texts_there_are(classes: str) -> None:
    """It is 0 whatever a model says."""
    labels = np.zeros(50, int)
    (scored,) = Scoring(("matthews",)).scored({"": Classified(tuple(classes), labels, labels)}, 100, 1).values()
    assert intervals([scored])["matthews"] == {"low": -1.0, "high": 1.0}


def test_a_rare_class_makes_the_mean_of_areas_uncertain() -> None:
    """The last of three classes has four texts; all probabilities are right, so no resample changes an area."""
    labels = np.repeat([0, 1, 2], [50, 46, 4])
    right = Classified(("a", "b", "c"), labels, labels, np.eye(3)[labels])
    (scored,) = Scoring(("roc_auc",)).scored({"": right}, 300, 1).values()
    lows = [(1 - wilson_interval(1.0, count)["low"]) / 3 for count in (50, 46, 4)]
    assert intervals([scored])["roc_auc"]["low"] == pytest.approx(1 - np.linalg.norm(lows))
