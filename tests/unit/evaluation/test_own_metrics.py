"""A metric that somebody added: what is wrong with it is said in one line, before it changes a figure."""

import re
from typing import Any

import numpy as np
import pytest

from retrace.core.errors import InputError
from retrace.evaluation.metrics import accuracy
from retrace.evaluation.outcomes import Classified, Scoring, figures
from retrace.statistics.intervals import intervals
from retrace.statistics.scales import Figure
from tests.toy import shown_plugin

RIGHT = Classified(("no", "yes"), np.array([0, 1, 1]), np.array([0, 1, 0]), None)
FILE = "retrace/evaluation/metrics/accuracy.py"


def _set(monkeypatch: pytest.MonkeyPatch, value: Any, **figure: Any) -> None:
    """Make `accuracy` a metric that gives `value` for weights (R, N), and defines the figures."""
    monkeypatch.setattr(accuracy, "FIGURES", figure)
    monkeypatch.setattr(accuracy, "resampled", lambda outcome: lambda weights: {"own": value(weights)})


OWN = Figure("fraction", "higher")
SCALES = "expected one of fraction, percentage, correlation, score, ratio, count, perplexity, loss, seconds, mebibytes"


@pytest.mark.parametrize(
    ("value", "figure", "message"),
    [
        (lambda weights: weights.mean(axis=0), OWN, "own has shape (3,) for weights (1, 3); expected (1,)"),
        (lambda weights: weights.mean(), OWN, "own has shape () for weights (1, 3); expected (1,)"),
        (lambda weights: np.full(len(weights), np.nan), OWN, "own is nan; expected a finite number, or none"),
        (lambda weights: weights.mean(axis=1), None, "own is not in FIGURES"),
        (lambda weights: weights.mean(axis=1), Figure("share", "higher"),
         f"own: scale: 'share' is not allowed; {SCALES}"),
        (lambda weights: weights.mean(axis=1), Figure("percent", "higher"),  # of published tables; it has no ends
         f"own: scale: 'percent' is not allowed; {SCALES}"),
        (lambda weights: weights.mean(axis=1), Figure("fraction", "up"),  # pyright: ignore[reportArgumentType]
         "own: better: 'up' is not allowed; expected one of higher, lower, neither"),
    ],
)  # fmt: skip
def test_a_metric_that_cannot_be_used(
    monkeypatch: pytest.MonkeyPatch, value: Any, figure: Figure | None, message: str
) -> None:
    _set(monkeypatch, value, **({"own": figure} if figure else {"other": OWN}))
    with pytest.raises(InputError, match=f"^{re.escape(f'{FILE}: {message}')}$"):
        Scoring(("accuracy",)).score(RIGHT)


def test_resampled_figures_have_their_shape_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one row of weights a sum over all of them looks right."""
    _set(monkeypatch, lambda weights: np.atleast_1d(weights.mean()), own=OWN)
    assert figures(accuracy, RIGHT) == {"own": 1.0}
    with pytest.raises(InputError, match=re.escape("own has shape (1,) for weights (2, 3); expected (2,)")):
        Scoring(("accuracy",)).resampled(RIGHT)(np.ones((2, 3)))


def test_score_may_give_only_the_figures_that_are_not_resampled(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the docs have it: a count beside a mean over the weights, whose figure is that of every example once."""
    _set(monkeypatch, lambda weights: weights.mean(axis=1), own=OWN, wrong=Figure("count", "neither"))
    monkeypatch.setattr(accuracy, "score", lambda outcome: {"wrong": 1}, raising=False)
    scoring = Scoring(("accuracy",))
    assert scoring.score(RIGHT) == {"wrong": 1, "own": 1.0}
    assert intervals([*scoring.scored({"one": RIGHT}, 100, 0).values()]).keys() == {"own"}


def test_two_metrics_with_the_same_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second would replace the first's, in all tables and as the figure that models are judged by."""
    _set(monkeypatch, lambda weights: weights.mean(axis=1), f1=OWN)
    with pytest.raises(InputError, match=f"^{re.escape(FILE)}: 'f1' is a figure of another metric too$"):
        Scoring(("f1", "accuracy"))


def test_the_metric_that_the_docs_show() -> None:
    """One of two examples of a class is found, two of three of another; the third class has no example."""
    metric = shown_plugin("Adding a metric")
    outcome = Classified(("a", "b", "c"), np.array([0, 0, 1, 1, 1]), np.array([0, 1, 1, 1, 2]))
    assert figures(metric, outcome) == {"balanced_accuracy": pytest.approx((1 / 2 + 2 / 3) / 2)}
    again = metric.resampled(outcome)(np.array([[3.0, 1.0, 0.0, 0.0, 1.0]]))
    assert again["balanced_accuracy"].tolist() == [(3 / 4 + 0) / 2]
