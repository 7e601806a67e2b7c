import numpy as np
import pytest

from stages.metrics.comparisons import Candidate, bootstrap_p, compare, detectable, holm, mcnemar
from stages.metrics.resampling import draw, mean_of

N = 400


def _candidate(*rights: np.ndarray) -> Candidate:
    drawn = draw({str(i): mean_of({"accuracy": right, "f1": right}) for i, right in enumerate(rights)}, N, 2000, 1)
    return Candidate(
        [{"accuracy": right.mean(), "f1": right.mean()} for right in rights],
        list(drawn.values()),
        [{"accuracy": right} for right in rights],
    )


def test_mcnemar_by_hand() -> None:
    first = np.array([True] * 6 + [False, True, False])
    second = np.array([False] * 6 + [True, True, False])
    # Seven examples on which they differ, six of them for the first: P(≥ 6 of 7) = 8 / 128, on both sides.
    assert mcnemar(first, second) == pytest.approx(2 * 8 / 128)
    assert mcnemar(first, first) == 1.0


def test_holm_by_hand() -> None:
    # The worked example of three tests: 0.01 × 3, 0.03 × 2, and the last no smaller than the one before.
    assert holm([0.03, 0.01, 0.04]) == [pytest.approx(0.06), pytest.approx(0.03), pytest.approx(0.06)]
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_a_resampled_p_is_never_zero() -> None:
    assert bootstrap_p(np.ones(999)) == pytest.approx(2 / 1000)
    assert bootstrap_p(np.array([-1.0, 1.0] * 50)) == 1.0


def test_what_can_be_shown_shrinks_with_the_root_of_the_examples() -> None:
    generator = np.random.default_rng(1)
    small, large = (detectable(generator.normal(0, 1 / np.sqrt(n), 20_000)) for n in (100, 400))
    assert small / large == pytest.approx(2, rel=0.03)
    assert small == pytest.approx(2.8 / 10, rel=0.03)


def test_a_clear_difference_a_tie_and_their_tests() -> None:
    generator = np.random.default_rng(1)
    good, poor = generator.random(N) < 0.9, generator.random(N) < 0.6
    near = good.copy()
    near[:2] = ~near[:2]
    found = compare({"good": _candidate(good), "poor": _candidate(poor), "near": _candidate(near)}, seed=1)
    by_pair = {(c["figure"], c["first"], c["second"]): c for c in found}
    clear = by_pair["accuracy", "good", "poor"]
    assert clear["verdict"] == "good"
    assert clear["test"] == "exact McNemar"
    assert clear["low"] < clear["difference"] < clear["high"]
    assert clear["p"] < clear["p_corrected"] < 0.001
    assert by_pair["accuracy", "poor", "near"]["verdict"] == "near"
    assert by_pair["accuracy", "good", "near"]["verdict"] == "tie"
    assert by_pair["f1", "good", "poor"]["test"] == "paired bootstrap"


def test_several_seeds_are_no_independent_examples() -> None:
    generator = np.random.default_rng(1)
    seeds = [generator.random(N) < 0.9 for _ in range(3)]
    (found, _) = compare({"first": _candidate(*seeds), "second": _candidate(*seeds[::-1])}, seed=1)
    assert found["test"] == "paired bootstrap"
    assert found["verdict"] == "tie"
    assert found["difference"] == pytest.approx(0)


def test_seeds_that_differ_make_the_difference_less_sure() -> None:
    generator = np.random.default_rng(1)
    even = [generator.random(N) < 0.8 for _ in range(2)]
    uneven = [generator.random(N) < share for share in (0.65, 0.95)]
    other = _candidate(*(generator.random(N) < 0.8 for _ in range(2)))
    (steady, _), (shaky, _) = (compare({"a": _candidate(*seeds), "b": other}, seed=1) for seeds in (even, uneven))
    assert shaky["high"] - shaky["low"] > 1.5 * (steady["high"] - steady["low"])
