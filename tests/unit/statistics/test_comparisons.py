from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import ttest_ind

from retrace.statistics.comparisons import (
    Difference,
    compare,
    difference,
    flag_unless_better,
    holm,
    mcnemar,
    smoothed,
)
from retrace.statistics.intervals import Scored, Share, mean_of, resample
from retrace.statistics.scales import Better, Figure, Legend, Shortfall

N = 400
LEGEND: Legend = dict.fromkeys(("accuracy", "f1", "recall"), Figure("fraction", "higher"))


def _models(*rights: np.ndarray) -> list[Scored]:
    drawn = resample({str(i): mean_of({"accuracy": right, "f1": right}) for i, right in enumerate(rights)}, N, 2000, 1)
    pairs = zip(map(Share.among_all, rights), drawn.values(), strict=True)
    return [Scored({"accuracy": of.value, "f1": of.value}, figures, {"accuracy": of}) for of, figures in pairs]


def _seeds(share: float, seed: int = 1) -> list[Scored]:
    """Three models that are right on about this share, each from its own seed."""
    generator = np.random.default_rng(seed)
    return _models(*(generator.random(N) < share for _ in range(3)))


def _of(*values: float) -> list[Scored]:
    """Models whose figures are the same for any choice of examples."""
    return [Scored({"f1": value}, {"f1": np.zeros(100)}) for value in values]


def _recall(share: Share) -> Scored:
    """A model whose recall no resample changes."""
    return Scored({"recall": share.value}, {"recall": np.full(100, share.value)}, {"recall": share})


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


def test_the_p_is_that_of_the_interval() -> None:
    for found in (Difference(0.1, 0.03), Difference(-0.1, 0.03, 0.02, 2.5), Difference(0.02, 0.01, 0.01, 1.0)):
        assert found.reach(found.p) == pytest.approx(abs(found.value))
        assert (found.interval["low"] <= 0 <= found.interval["high"]) == (found.p >= 0.05)
    assert Difference(1.96, 1.0).p == pytest.approx(0.05, abs=1e-4)
    assert Difference(4.302652729911275, 0.0, 1.0, 2.0).p == pytest.approx(0.05)
    assert Difference(0.0, 0.0).p == 1.0
    assert 0 < Difference(1.0, 0.0).p < 1e-12  # never 0


def test_what_can_be_shown_by_hand() -> None:
    assert Difference(0.0, 0.1).detectable() == pytest.approx((1.959964 + 0.8416212) * 0.1)
    # With ten pairs, each has to be beyond 0.5%.
    assert Difference(0.0, 0.1).detectable(10) == pytest.approx((2.807034 + 0.8416212) * 0.1)
    # The quantiles of the normal distribution, and of Student's t of two degrees of freedom.
    both = Difference(0.0, 3.0, 4.0, 2.0)
    power = np.hypot(0.8416212 * 3, 1.060660 * 4)
    assert both.detectable() == pytest.approx(np.hypot(1.959964 * 3, 4.302653 * 4) + power)


def test_a_difference_that_can_be_detected_is_shown_in_four_of_five_trials() -> None:
    """By Holm among three methods of three seeds, two of which are equal; the true difference is the detectable one."""
    generator, found = np.random.default_rng(1), 0
    true = Difference(0.0, 0.0, (2 / 3) ** 0.5, 4.0).detectable(3)
    for _ in range(400):
        seeds = generator.normal(0, 1, size=(3, 3)) + np.array([[true], [0], [0]])
        pairs = [(0, 1), (0, 2), (1, 2)]
        errors = [((seeds[one].var(ddof=1) + seeds[two].var(ddof=1)) / 3) ** 0.5 for one, two in pairs]
        gaps = [Difference(seeds[one].mean() - seeds[two].mean(), 0.0, error, 4.0)
                for (one, two), error in zip(pairs, errors, strict=True)]  # fmt: skip
        found += holm([gap.p for gap in gaps])[0] < 0.05
    assert 0.7 < found / 400 < 0.9


def test_from_one_seed_models_differ_or_do_not_and_no_method_is_better() -> None:
    generator = np.random.default_rng(1)
    good, poor = generator.random(N) < 0.9, generator.random(N) < 0.6
    near = good ^ (np.arange(N) < 2)
    found = compare({"good": _models(good), "poor": _models(poor), "near": _models(near)}, LEGEND)
    by_pair = {(c.figure, c.first, c.second): c for c in found}
    clear = by_pair["accuracy", "good", "poor"]
    assert (clear.verdict, clear.test) == ("models differ", "exact McNemar")
    assert clear.p < clear.p_corrected < 0.001
    assert by_pair["accuracy", "good", "near"].verdict == "no difference shown"
    assert by_pair["f1", "good", "poor"].test == "paired bootstrap"
    # So it is with one seed on one side only.
    (uneven, _) = compare({"good": _models(good), "poor": _seeds(0.6)}, LEGEND)
    assert (uneven.verdict, uneven.test) == ("models differ", "paired bootstrap")


def test_the_better_method_is_the_one_that_the_figure_calls_so() -> None:
    pair = {"good": _seeds(0.9), "poor": _seeds(0.6, seed=2)}
    legends = [dict.fromkeys(LEGEND, Figure("fraction", way)) for way in ("higher", "lower", "neither")]
    assert [compare(pair, legend)[0].verdict for legend in legends] == ["good", "poor", "they differ"]


def test_with_a_third_method_a_difference_has_to_be_clearer() -> None:
    a, b, between = _of(0.70, 0.72, 0.74), _of(0.64, 0.66, 0.68), _of(0.67, 0.69, 0.71)
    (alone,) = compare({"a": a, "b": b}, LEGEND)
    _, p = ttest_ind([0.70, 0.72, 0.74], [0.64, 0.66, 0.68])
    assert (alone.verdict, alone.p) == ("a", pytest.approx(p))
    found = compare({"a": a, "b": b, "between": between}, LEGEND)
    assert (found[0].p, found[0].p_corrected) == (alone.p, pytest.approx(3 * alone.p))
    assert {pair.verdict for pair in found} == {"tie"}


def test_mcnemar_only_of_the_same_examples() -> None:
    hits = np.random.default_rng(1).random(N) < 0.7
    every, some = Share.among_all(hits), Share(hits & (np.arange(N) < 300), np.arange(N) < 300)
    first, second = ([replace(model, shares={"accuracy": of}) for model in _models(hits)] for of in (every, some))
    tests = [compare({"a": first, "b": other}, LEGEND)[0].test for other in (first, second)]
    assert tests == ["exact McNemar", "paired bootstrap"]


@pytest.mark.parametrize(("texts", "verdict"), [(1, "no difference shown"), (20, "models differ")])
def test_examples_that_share_texts_are_not_compared_by_mcnemar(texts: int, verdict: str) -> None:
    """One model has a hundred texts of four examples right, the other all but those of one text, or of twenty.

    By example, McNemar's test of four differences has p = 1/8, and of eighty 2⁻⁷⁹; but it is texts that differ.
    """
    clusters = np.arange(N) // 4
    models = {"one": np.ones(N, bool), "other": clusters >= texts}
    drawn = resample({name: mean_of({"accuracy": hits}) for name, hits in models.items()}, N, 4000, 1, clusters)
    one, other = ([Scored({"accuracy": float(hits.mean())}, drawn[name], {"accuracy": Share.among_all(hits)},
                          clusters=clusters)] for name, hits in models.items())  # fmt: skip
    (pair,) = compare({"one": one, "other": other}, LEGEND)
    assert (pair.test, pair.verdict) == ("paired bootstrap", verdict)
    share = texts / 100
    found = difference("accuracy", one, other)
    assert (found.independent, found.of_examples) == (100, pytest.approx((share * (1 - share) / 99) ** 0.5, rel=0.03))


def test_a_share_of_some_examples_has_the_freedom_of_their_texts() -> None:
    """Recall of forty examples, in ten of a hundred texts; without any such example one counts."""
    clusters, labels = np.arange(N) // 4, np.arange(N) < 40
    for among, texts in ((labels, 10), (~labels, 90), (np.zeros(N, bool), 1)):
        model = Scored({"recall": 0.0}, {}, {"recall": Share(np.zeros(N, bool), among)}, clusters=clusters)
        assert model.independent("recall") == texts


@pytest.mark.parametrize(("texts", "is_shown"), [(2, False), (3, True), (6, True)])
def test_on_few_texts_of_many_examples_a_large_difference_is_shown(texts: int, is_shown: bool) -> None:
    """One model has 95% right, the other 5%. Of two texts, 12.7 (Student's t) · 0.9 / √80 exceeds the difference."""
    examples = np.arange(40 * texts)
    clusters, models = examples % texts, {"one": examples % 20 > 0, "other": examples % 20 == 0}
    resampled = {name: mean_of({"accuracy": hits}) for name, hits in models.items()}
    drawn = resample(resampled, len(examples), 400, 1, clusters)
    one, other = ([Scored({"accuracy": float(hits.mean())}, drawn[name], {"accuracy": Share.among_all(hits)},
                          clusters=clusters)] for name, hits in models.items())  # fmt: skip
    found = difference("accuracy", one, other)
    assert (found.interval["low"] > 0, found.p < 0.05) == (is_shown, is_shown)


def test_both_sources_of_chance_count_by_hand() -> None:
    # Over examples: a standard deviation of 3. Over seeds: variances of 32 and 0 of two seeds each, √(32 / 2 + 0) = 4.
    drawn = {"f1": np.array([-1.0, 0.0, 1.0]) * 3}
    first, second = [Scored({"f1": value}, drawn) for value in (2.0, 10.0)], _of(0.0, 0.0)
    second = [replace(model, drawn={"f1": np.zeros(3)}) for model in second]
    found = difference("f1", first, second)
    assert (found.value, found.of_examples, found.of_seeds, found.freedom) == pytest.approx((6, 3, 4, 1))


def test_several_seeds_are_no_independent_examples() -> None:
    generator = np.random.default_rng(1)
    seeds = [generator.random(N) < 0.9 for _ in range(3)]
    (found, _) = compare({"first": _models(*seeds), "second": _models(*seeds[::-1])}, LEGEND)
    assert (found.test, found.verdict, found.difference) == ("examples and seeds", "tie", pytest.approx(0))


def test_what_floating_point_leaves_is_no_difference() -> None:
    (found,) = compare({"a": _of(0.7, 0.8, 0.9), "b": _of(0.9, 0.7, 0.8)}, LEGEND)
    assert (found.difference, found.p) == (0.0, 1.0)


def test_seeds_that_are_paired_vary_by_their_differences() -> None:
    """Three seeds far apart, each better by 2, 3 and 4 points: the standard error is 0.01 / √3, with 2 degrees."""
    first, second = _of(0.52, 0.73, 0.94), _of(0.5, 0.7, 0.9)
    found = difference("f1", first, second, are_paired=True)
    assert (found.value, found.of_examples, found.of_seeds, found.freedom) == pytest.approx((0.03, 0, 0.01 / 3**0.5, 2))
    assert difference("f1", first, second).interval["low"] < 0
    assert difference("f1", first[:1], second[:1], are_paired=True).is_of_models


@pytest.mark.parametrize("second", [(0.50, 0.51, 0.56, 0.49, 0.5), (0.50, 0.51, 0.56), (0.5, 0.51)])
@pytest.mark.parametrize("are_alike", [False, True])
def test_seeds_alone_are_compared_as_scipy_does(second: tuple[float, ...], are_alike: bool) -> None:
    """Welch's test, or Student's, with as many seeds each and with others."""
    first = (0.52, 0.58, 0.61)
    found = difference("f1", _of(*first), _of(*second), are_alike)
    theirs: Any = ttest_ind(first, second, equal_var=are_alike)
    assert found.value == pytest.approx(np.mean(first) - np.mean(second))
    assert tuple(found.interval.values()) == pytest.approx(tuple(theirs.confidence_interval()))
    assert found.p == pytest.approx(theirs.pvalue)


def test_variances_too_small_to_be_squared_have_their_degrees_of_freedom() -> None:
    """BLEU of sentences without common 4-grams is about 1e-153: one side does not vary, the other has two seeds."""
    found = difference("f1", _of(0.0, 0.0), _of(2.4e-153, 2.1e-153))
    assert (found.value, found.freedom, found.p) == (0.0, 1.0, 1.0)


def test_seeds_that_are_all_the_same_leave_the_choice_of_examples() -> None:
    spread = np.array([-0.1, 0.0, 0.1])
    first, second = Scored({"f1": 0.8}, {"f1": 0.8 + 2 * spread}), Scored({"f1": 0.6}, {"f1": 0.6 + spread})
    found = difference("f1", [first] * 2, [second] * 2)
    assert (found.of_examples, found.of_seeds, found.is_of_models) == (pytest.approx(0.1), 0.0, False)


@pytest.mark.parametrize(("asked", "least"), [((True,) * 4 + (False,) * 5, 4), ((True,) * 9, 9)])
def test_examples_that_all_agree_are_no_more_certain_than_their_number(asked: tuple[bool, ...], least: int) -> None:
    """Of the method that has fewer, all differ by 1; with two more of 1, 0, 0 and -1, each counted half."""
    first, second = _recall(Share(np.array(asked), np.array(asked))), _recall(Share.among_all(np.zeros(9, bool)))
    for seeds in (1, 2):
        error = (np.var([1.0] * (2 * least + 1) + [0.0, 0.0, -1.0]) / (least + 2)) ** 0.5
        assert difference("recall", [first] * seeds, [second] * seeds).of_examples == pytest.approx(error)


@pytest.mark.parametrize(("gap", "width"), [(0.9, 1.0), (0.9, np.inf), (0.0, 1.0)])
def test_of_many_examples_a_difference_is_as_certain_as_its_resamples(gap: float, width: float) -> None:
    """However large it is: two examples more hardly count."""
    assert smoothed(gap, 0.01, 2000, width) == pytest.approx(0.01, rel=0.005)
    assert smoothed(gap, 0.0, 2000, width) < 0.002


@pytest.mark.parametrize(("low", "high"), [(0.1, 0.3), (-0.1, 0.3), (0.0, 0.3), (-0.3, -0.1), (-0.3, 0.0)])
@pytest.mark.parametrize("better", ["higher", "lower"])
def test_a_figure_is_better_where_the_whole_interval_says_so(low: float, high: float, better: Better) -> None:
    found = flag_unless_better("loss", "unigram", 4.0, 4.2, {"low": low, "high": high}, better, "of words")
    flag = {"not_above_unigram": Shortfall("loss", 4.0, "unigram", 4.2, low, high, "of words")}
    assert found == ({} if (low, high, better) in [(0.1, 0.3, "higher"), (-0.3, -0.1, "lower")] else flag)


def test_resamples_without_a_figure_are_left_out_of_its_spread() -> None:
    one, other = (Scored({"f1": value}, {"f1": np.array(drawn)}) for value, drawn in (
        (0.6, [0.5, np.nan, 0.7, 0.6]), (0.4, [0.4, 0.4, 0.4, np.nan])
    ))  # fmt: skip
    found = difference("f1", [one], [other])
    assert found.of_examples == pytest.approx(np.std([0.1, 0.3], ddof=1))


def test_methods_without_a_figure_are_in_none_of_its_pairs() -> None:
    """Two of three methods have an F1, so its p is not corrected; all three have an accuracy."""
    first, second, third = (_seeds(share, seed=seed) for seed, share in enumerate((0.9, 0.6, 0.7)))
    without = [replace(seed, drawn={"accuracy": seed.drawn["accuracy"]}) for seed in third]
    found = compare({"first": first, "second": second, "third": without}, LEGEND)
    assert [(pair.first, pair.second) for pair in found if pair.figure == "f1"] == [("first", "second")]
    assert all(pair.p_corrected == pair.p for pair in found if pair.figure == "f1")
    assert len([pair for pair in found if pair.figure == "accuracy"]) == 3
