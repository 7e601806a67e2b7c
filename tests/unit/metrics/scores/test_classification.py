"""Each score by hand, against scikit-learn on random data, and its resampled form against repeated examples."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score, matthews_corrcoef, precision_score, recall_score, roc_auc_score

from stages.harness.plugins import load_plugin
from stages.metrics.outcomes import Classified
from stages.metrics.scores import accuracy, calibration, f1, matthews, precision, recall, roc_auc

NAMES = ("accuracy", "precision", "recall", "f1", "matthews", "roc_auc", "calibration")
HAND = Classified(("no", "yes"), np.array([1, 1, 1, 0, 0]), np.array([1, 1, 0, 1, 0]))  # 2 hits, 1 missed, 1 false


@st.composite
def outcomes(draw: st.DrawFn) -> Classified:
    classes = draw(st.integers(2, 4))
    size = draw(st.integers(1, 30))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    probabilities = generator.dirichlet(np.ones(classes), size).round(draw(st.sampled_from([1, 6])))
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    labels = generator.integers(draw(st.integers(1, classes)), size=size)
    return Classified(tuple("abcd"[:classes]), labels, probabilities.argmax(axis=1), probabilities)


def test_by_hand() -> None:
    assert accuracy.score(HAND) == {"accuracy": pytest.approx(3 / 5)}
    assert precision.score(HAND)["precision"] == pytest.approx(2 / 3)
    assert recall.score(HAND)["recall"] == pytest.approx(2 / 3)
    assert recall.score(HAND)["recall_macro"] == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert f1.score(HAND)["f1"] == pytest.approx(2 / 3)
    assert f1.score(HAND)["f1_micro"] == pytest.approx(3 / 5)
    assert matthews.score(HAND) == {"matthews": pytest.approx((2 * 1 - 1 * 1) / np.sqrt(3 * 3 * 2 * 2))}


def test_no_probabilities_no_area_and_no_calibration() -> None:
    assert roc_auc.score(HAND) == calibration.score(HAND) == {}


def test_the_area_of_one_pair_in_the_wrong_order() -> None:
    chances = np.array([0.9, 0.8, 0.3, 0.4, 0.1])
    outcome = Classified(HAND.classes, HAND.labels, HAND.predicted, np.stack([1 - chances, chances], axis=1))
    assert roc_auc.score(outcome) == {"roc_auc": pytest.approx(5 / 6)}


def test_calibration_by_hand() -> None:
    chances = np.array([0.95, 0.95, 0.65, 0.65, 0.65])
    outcome = Classified(
        ("no", "yes"), np.array([1, 1, 1, 0, 0]), np.ones(5, int), np.stack([1 - chances, chances], axis=1)
    )
    assert calibration.score(outcome) == {"calibration_error": pytest.approx(2 / 5 * 0.05 + 3 / 5 * (0.65 - 1 / 3))}


@settings(deadline=None)
@given(outcomes())
def test_the_resampled_form_gives_the_score_itself(outcome: Classified) -> None:
    for name in NAMES:
        module = load_plugin("stages.metrics.scores", name, "")
        plain, drawn = module.score(outcome), module.resampled(outcome)(np.ones((2, len(outcome.labels))))
        assert plain.keys() == drawn.keys() <= module.FIGURES.keys()
        for figure, value in plain.items():
            np.testing.assert_allclose(drawn[figure], value, atol=1e-9, err_msg=figure)


@settings(deadline=None)
@given(outcomes(), st.integers(0, 2**32))
def test_a_weight_is_a_repeated_example(outcome: Classified, seed: int) -> None:
    weights = np.random.default_rng(seed).integers(0, 4, size=len(outcome.labels))
    weights[0] += 1
    assert outcome.probabilities is not None
    repeated = Classified(
        outcome.classes,
        np.repeat(outcome.labels, weights),
        np.repeat(outcome.predicted, weights),
        np.repeat(outcome.probabilities, weights, axis=0),
    )
    for name in NAMES:
        module = load_plugin("stages.metrics.scores", name, "")
        drawn = module.resampled(outcome)(weights[None].astype(float))
        for figure, value in module.score(repeated).items():
            assert drawn[figure][0] == pytest.approx(value, abs=1e-9), figure


@settings(deadline=None)
@given(outcomes())
def test_scikit_learn_agrees(outcome: Classified) -> None:
    labels, predicted = outcome.labels, outcome.predicted
    for module, function in ((precision, precision_score), (recall, recall_score), (f1, f1_score)):
        name = module.__name__.rsplit(".", 1)[-1]
        for mean in ("macro", "micro", "weighted"):
            expected: Any = function(labels, predicted, average=mean, zero_division=0)  # pyright: ignore
            assert module.score(outcome)[f"{name}_{mean}"] == pytest.approx(expected, abs=1e-12)
    if len(np.union1d(labels, predicted)) > 1:
        assert matthews.score(outcome)["matthews"] == pytest.approx(matthews_corrcoef(labels, predicted))
    if len(np.unique(labels)) == len(outcome.classes) > 2:
        expected = roc_auc_score(labels, outcome.probabilities, multi_class="ovr")
        assert roc_auc.score(outcome)["roc_auc"] == pytest.approx(expected)
