import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from stages.metrics.intervals import (
    mean_over_seeds,
    percentile_interval,
    seeds_resampled,
    share_interval,
    wilson_interval,
)  # fmt: skip
from stages.metrics.resampling import draw, mean_of, resamples


def test_a_resample_draws_as_many_examples_as_there_are_and_the_same_for_the_same_seed() -> None:
    first, second = (np.concatenate(list(resamples(50, 300, seed=3))) for _ in range(2))
    assert first.shape == (300, 50)
    assert set(first.sum(axis=1)) == {50}
    assert np.array_equal(first, second)


def test_large_and_small_chunks_hold_the_same_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = np.concatenate(list(resamples(10, 40, seed=3)))
    monkeypatch.setattr("stages.metrics.resampling.CHUNK", 70)
    assert np.array_equal(whole, np.concatenate(list(resamples(10, 40, seed=3))))


def test_the_interval_of_a_mean_is_as_wide_as_the_normal_approximation_says() -> None:
    values = np.random.default_rng(1).normal(5, 2, size=400)
    drawn = draw({"model": mean_of({"score": values})}, 400, 10_000, seed=1)["model"]["score"]
    found = percentile_interval(drawn)
    reach = 1.96 * values.std() / 20
    assert found["low"] == pytest.approx(values.mean() - reach, abs=0.03)
    assert found["high"] == pytest.approx(values.mean() + reach, abs=0.03)


@settings(deadline=None)
@given(st.integers(1, 400), st.integers(0, 400))
def test_wilson_as_scipy_has_it(examples: int, right: int) -> None:
    right = min(right, examples)
    expected = binomtest(right, examples).proportion_ci(method="wilson")
    found = wilson_interval(right / examples, examples)
    assert found == {"low": pytest.approx(expected.low, abs=1e-12), "high": pytest.approx(expected.high, abs=1e-12)}


def test_a_perfect_share_is_not_said_to_be_certain() -> None:
    assert share_interval(1.0, 50, np.ones(100))["low"] < 0.95
    assert share_interval(0.5, 50, np.full(100, 0.5)) == {"low": 0.5, "high": 0.5}


def test_seeds_apart_widen_the_second_interval_only() -> None:
    steady = [np.full(1000, 0.8), np.full(1000, 0.6)]
    assert np.ptp(mean_over_seeds(steady)) == 0
    both = seeds_resampled(steady, np.random.default_rng(1))
    assert set(both.round(6)) == {0.6, 0.7, 0.8}
    alone = seeds_resampled(steady[:1], np.random.default_rng(1))
    assert np.array_equal(alone, steady[0])
