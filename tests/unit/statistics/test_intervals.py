import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from retrace.statistics import intervals as ci
from retrace.statistics.comparisons import compare, difference
from retrace.statistics.scales import SCALES, Figure


def test_a_seed_draws_as_many_examples_as_there_are_however_large_the_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    (whole,) = ci.resamples(50, 300, seed=3)
    assert (whole.shape, set(whole.sum(axis=1))) == ((300, 50), {50})
    monkeypatch.setattr(ci, "CHUNK", 350)
    assert np.array_equal(whole, np.concatenate(list(ci.resamples(50, 300, seed=3))))


def test_examples_that_share_a_text_are_drawn_together() -> None:
    """The weights of a text's examples are equal; those of the three texts sum to three."""
    clusters = ci.clusters_of(["a", "b", "a", "c", "a"])
    (weights,) = ci.resamples(5, 200, seed=3, clusters=clusters)
    assert np.array_equal(weights[:, [0, 0]], weights[:, [2, 4]])
    assert set(weights[:, [0, 1, 3]].sum(axis=1)) == {3}


@pytest.mark.parametrize("keys", ["abcd", "aaaa", "a"])
def test_with_one_example_for_each_text_or_one_text_for_all_examples_are_independent(keys: str) -> None:
    assert ci.clusters_of(keys) is None


def test_a_share_of_examples_that_share_texts_counts_as_one_of_fewer() -> None:
    """Three texts of four examples with 4, 3 and 1 right: errors of examples 1/3 and -2/3, of texts 4/3, 1/3, -5/3.

    Their squares sum to 8/3 and 14/3. With the divisors N - 1 and Student's t of two and eleven degrees of freedom, the
    variance over texts is (14/3 · 3/2 · 4.302653²) / (8/3 · 12/11 · 2.200985²) times that over examples.
    """
    right = np.array([1, 1, 1, 1, 1, 1, 1, 0, 1, 0, 0, 0], dtype=bool)
    share, clusters = ci.Share.among_all(right), np.arange(12) // 4
    expected = 12 * (8 / 3 * 12 / 11 * 2.200985**2) / (14 / 3 * 3 / 2 * 4.302653**2)
    assert ci.effective_examples(share, clusters) == pytest.approx(expected, rel=1e-5)
    found = ci.interval_of_examples(2 / 3, [share], np.empty(0), 12, (0.0, 1.0), clusters)
    assert found == pytest.approx(ci.wilson_interval(2 / 3, expected), rel=1e-5)


def test_examples_that_share_texts_never_count_as_more_than_they_are() -> None:
    """Each text has a right and a wrong one, so texts vary less than examples."""
    assert ci.effective_examples(ci.Share.among_all(np.arange(12) % 2 == 0), np.arange(12) // 2) == 12


def test_a_share_of_0_or_1_counts_texts_and_one_text_tells_nothing_of_others() -> None:
    clusters, all_right = np.arange(12) // 4, np.ones(12, bool)
    for share in (ci.Share.among_all(all_right), ci.Share.among_all(~all_right)):
        assert ci.effective_examples(share, clusters) == 3
    of_one_text = np.arange(12) < 4
    assert ci.effective_examples(ci.Share(of_one_text, of_one_text), clusters) == 1
    assert ci.effective_examples(ci.Share(np.arange(12) == 0, of_one_text), clusters) == 0


def test_a_text_with_all_errors_makes_a_share_uncertain() -> None:
    """Ten texts of four examples, one wrong: errors of examples 1/40 and -39/40, of texts 1/10 and -9/10.

    The squares of the latter, 1/100 and 81/100, have the mean 9/100 and the variance 9 · 64 / 100², hence
    2 · 10 / (64 / 9) degrees of freedom. The variances over texts and examples are equal.
    """
    share, clusters = ci.Share.among_all(np.arange(40) > 0), np.arange(40) // 4
    wider = (stats.t.ppf(0.975, 20 / (64 / 9)) / stats.t.ppf(0.975, 39)) ** 2
    assert ci.effective_examples(share, clusters) == pytest.approx(40 / wider)


def test_examples_that_share_texts_count_at_least_as_if_those_of_a_text_were_alike() -> None:
    """One error in eighty texts of one or two examples: its text has nearly all of the variance over texts."""
    clusters = np.repeat(np.arange(80), [1, 2] * 40)
    found = ci.effective_examples(ci.Share.among_all(np.arange(120) > 0), clusters)
    assert found == pytest.approx(120 / ((40 + 40 * 4) / 120 * (stats.t.ppf(0.975, 79) / stats.t.ppf(0.975, 119)) ** 2))


@pytest.mark.parametrize(("texts", "right"), [(20, 0.99), (50, 0.99), (50, 0.97)])
def test_intervals_of_shares_near_1_hold_the_truth_of_few_large_texts(texts: int, right: float) -> None:
    """Texts of thirty examples, those of a text alike: of twenty with 99% right, a quarter has no error at all.

    If 600 examples counted there, only 71% of the intervals would hold the truth; with a degree of freedom for each of
    fifty texts, 82%.
    """
    generator, held = np.random.default_rng(1), 0
    clusters = np.arange(30 * texts) // 30
    for _ in range(400):
        chances = generator.beta(right * 7 / 3, (1 - right) * 7 / 3, texts)[clusters]
        share = ci.Share.among_all(generator.random(len(clusters)) < chances)
        found = ci.wilson_interval(share.value, ci.effective_examples(share, clusters))
        held += found["low"] <= right <= found["high"]
    assert held / 400 > 0.91


@pytest.mark.parametrize("has_clusters", [True, False])
def test_intervals_hold_the_truth_only_if_texts_are_drawn_whole(has_clusters: bool) -> None:
    """Thirty texts of five examples, all right or all wrong: by example, intervals are √5 times too narrow."""
    generator, held = np.random.default_rng(1), {"share": 0, "points": 0}
    clusters = np.arange(150) // 5 if has_clusters else None
    for sample in range(200):
        right = np.repeat(generator.random(30) < 0.6, 5)
        resampled = {"": ci.mean_of({"share": right, "points": right * 10.0})}
        drawn = ci.resample(resampled, 150, 200, sample, clusters)[""]
        shares, ends = {"share": ci.Share.among_all(right)}, {"share": (0.0, 1.0), "points": (0.0, 10.0)}
        figures = {"share": float(right.mean()), "points": float(right.mean() * 10)}
        scored = ci.Scored(figures, drawn, shares, {"points": 150}, ends=ends, clusters=clusters)
        found = ci.intervals([scored])
        held["share"] += found["share"]["low"] <= 0.6 <= found["share"]["high"]
        held["points"] += found["points"]["low"] <= 6.0 <= found["points"]["high"]
    assert all((count / 200 > 0.91) == has_clusters for count in held.values())


@given(st.integers(1, 400), st.integers(0, 400))
def test_wilson_as_scipy_has_it(examples: int, right: int) -> None:
    right = min(right, examples)
    expected = stats.binomtest(right, examples).proportion_ci(method="wilson")
    found = ci.wilson_interval(right / examples, examples)
    assert found == pytest.approx({"low": expected.low, "high": expected.high}, abs=1e-12)
    assert 0 <= found["low"] <= right / examples <= found["high"] <= 1


def test_a_share_between_two_counts_has_the_interval_between_theirs() -> None:
    """As a mean over seeds is."""
    below, between, above = (ci.wilson_interval(right / 20, 20) for right in (7, 7.5, 8))
    assert all(below[end] < between[end] < above[end] for end in ("low", "high"))


def test_without_examples_or_with_one_nothing_is_known() -> None:
    nothing = ci.Share(np.zeros(4, bool), np.zeros(4, bool))
    assert nothing.value == 0
    assert ci.interval_of_examples(0.0, [nothing], np.zeros(100), 4, (0.0, 1.0)) == {"low": 0.0, "high": 1.0}
    assert ci.interval_of_examples(66.7, [], np.full(100, 66.7), 1, (0.0, 100.0)) == {"low": 0.0, "high": 100.0}


def test_with_few_examples_an_interval_is_wider_than_the_resamples() -> None:
    """Five examples: Student's t with four degrees of freedom, and N - 1 in the variance.

    An end of Wilson's interval is a share whose own standard error reaches to the figure; here that error is the
    resamples' at the figure.
    """
    drawn = np.linspace(56.7, 76.7, 401)
    spread = drawn.std(ddof=1) * 2.776445 * (5 / 4) ** 0.5
    five = ci.interval_of_examples(66.7, [], drawn, 5, (0.0, 100.0))
    for end in five.values():
        assert abs(end - 66.7) == pytest.approx(spread * (end * (100 - end) / (66.7 * 33.3)) ** 0.5, rel=1e-5)
    assert [ci.widening(examples) for examples in (0, 1)] == [1.0, 1.0]
    assert ci.widening(1000) == pytest.approx(1, abs=2e-3)


@pytest.mark.parametrize("documents", [3, 5, 20])
def test_an_interval_of_few_numbers_holds_their_mean_as_often_as_it_says(documents: int) -> None:
    generator, held = np.random.default_rng(documents), 0
    for sample in range(400):
        values = generator.normal(3, 1, size=documents)
        drawn = ci.resample({"": ci.mean_of({"loss": values})}, documents, 400, sample)[""]["loss"]
        found = ci.percentile_interval(values.mean(), drawn, documents)
        held += found["low"] <= 3 <= found["high"]
    assert held / 400 > 0.9


def test_a_figure_that_is_higher_in_resamples_stays_in_its_interval() -> None:
    drawn = np.random.default_rng(1).normal(0.53, 0.005, 4000)
    for found in ci.centred_interval(0.5, drawn), ci.spread_interval(0.5, drawn, 0, (0.0, 1.0)):
        assert found == pytest.approx({"low": 0.5 - 1.96 * 0.005, "high": 0.5 + 1.96 * 0.005}, abs=5e-4)


@pytest.mark.parametrize(("right", "half"), [(0.02, 0.03), (0.95, 0.03)])
def test_the_interval_of_a_mean_that_few_examples_decide_holds_the_truth(right: float, half: float) -> None:
    """Fifty answers, of which few are right, or wrong, and few have half a point: percentiles held it in 86%."""
    generator, held = np.random.default_rng(1), 0
    for sample in range(400):
        points = generator.choice([1.0, 0.5, 0.0], size=50, p=[right, half, 1 - right - half])
        drawn = ci.resample({"": ci.mean_of({"f1": points})}, 50, 300, sample)[""]["f1"]
        found = ci.interval_of_examples(float(points.mean()), [], drawn, 50, (0.0, 1.0))
        held += found["low"] <= right + half / 2 <= found["high"]
    assert held / 400 > 0.92


@pytest.mark.parametrize("ends", [(0.0, 1.0), (0.0, 100.0), (-1.0, 1.0)])
@pytest.mark.parametrize("share", [0.0, 0.8, 1.0])
def test_a_figure_that_no_resample_changes_is_not_said_to_be_certain(share: float, ends: tuple[float, float]) -> None:
    """As where every answer has one word too many: F1 80 for each of 30 questions; or at an end of its scale."""
    low, high = ends
    value = low + share * (high - low)
    expected = {end: low + at * (high - low) for end, at in ci.wilson_interval(share, 30).items()}
    for rounding in (0.0, 1e-13):
        drawn = value + rounding * np.arange(100)
        assert ci.interval_of_examples(value, [], drawn, 30, ends) == pytest.approx(expected)


def test_a_figure_on_a_scale_without_an_end_is_as_certain_as_its_resamples() -> None:
    assert ci.interval_of_examples(3.0, [], np.full(100, 3.0), 30, (0.0, np.inf)) == {"low": 3.0, "high": 3.0}


def test_a_resample_that_lacks_a_class_does_not_make_a_figure_more_certain() -> None:
    for lacking, examples in ((1, 6), (600, 2)):  # the latter as Matthews' correlation of two texts
        drawn = (np.arange(1000) >= lacking).astype(float)
        found = ci.interval_of_examples(1.0, [], drawn, examples, (0.0, 1.0))
        assert found == pytest.approx(ci.wilson_interval(1.0, examples))


@pytest.mark.parametrize("seeds", [1, 3])
def test_the_interval_of_a_method_is_of_its_examples_and_its_seeds(seeds: int) -> None:
    """80, 90 and 85 of 100 are right; a share has scipy's Wilson interval, any other figure the resamples'."""
    rights, models, ends = (80, 90, 85)[:seeds], [], {"accuracy": (0.0, 1.0)}
    for right in rights:
        drawn = {"accuracy": np.full(100, right / 100), "score": right + np.linspace(-2, 2, 401)}
        share = {"accuracy": ci.Share.among_all(np.arange(100) < right)}
        models.append(ci.Scored({"accuracy": right / 100, "score": right}, drawn, share, {"score": 100}, ends=ends))
    found, middle = ci.intervals(models), np.mean(rights)
    wilson = stats.binomtest(int(middle), 100).proportion_ci(method="wilson")
    student = 4.302653 * 5 / np.sqrt(3) if seeds == 3 else 0  # of 80, 90 and 85, whose standard deviation is 5
    reach = 1.9 * ci.widening(100)
    for name, scale, alone in (("accuracy", 100, wilson), ("score", 1, (middle - reach, middle + reach))):
        below, above = (np.hypot(middle / scale - end, student / scale) for end in alone)
        examples = {"low_examples": alone[0], "high_examples": alone[1]} if seeds == 3 else {}
        assert found[name] == pytest.approx({"low": middle / scale - below, "high": middle / scale + above, **examples})


def test_a_figure_that_is_not_a_share_for_one_seed_is_not_one_in_the_mean() -> None:
    share = ci.Share.among_all(np.arange(10) < 5)
    drawn, ends = {"f1": np.linspace(0.4, 0.6, 101)}, {"f1": (0.0, 1.0)}
    found = ci.intervals([ci.Scored({"f1": 0.5}, drawn, of, {"f1": 10}, ends=ends) for of in ({"f1": share}, {})])["f1"]
    among = 0.25 / (ci.widening(10) * float(np.std(drawn["f1"], ddof=1))) ** 2
    both = ci.wilson_interval(0.5, among).values()
    assert (found["low_examples"], found["high_examples"]) == pytest.approx(tuple(both))


def test_means_that_are_shares_are_those_of_zeros_and_ones_among_the_asked() -> None:
    among = np.array([True, True, True, False])
    columns = {"exact": np.array([1.0, 0.0, 1.0, 0.5]), "f1": np.array([1.0, 0.5, 1.0, 1.0])}
    (share,) = ci.whole_shares(columns, among).values()
    assert (share.hits.tolist(), share.value) == ([True, False, True, False], 2 / 3)
    assert share.among.tolist() == among.tolist()


POINTS = st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=5, max_size=5)  # of five examples


@given(st.lists(POINTS, min_size=1, max_size=4), st.booleans(), st.floats(-0.2, 0.2))
def test_intervals_hold_their_figure_within_its_scale(scored: list[list[float]], is_share: bool, shift: float) -> None:
    rows, ends = np.array(scored), (0.0, 100.0)
    shares = [ci.Share.among_all(row == 1) for row in rows] if is_share else []
    by_seed = [100 * (share.value if is_share else row.mean()) for share, row in zip(shares or rows, rows, strict=True)]
    weights = np.concatenate(list(ci.resamples(5, 60, 1)))
    drawn = np.mean([100 * (weights @ row / 5 + shift) for row in rows], axis=0)
    middle = float(np.mean(by_seed))
    found = ci.interval_of_examples(middle, shares, drawn, 5, ends)
    for interval in (found, ci.with_seeds(found, by_seed, ends) if len(by_seed) > 1 else found):
        assert ends[0] <= interval["low"] <= middle <= interval["high"] <= ends[1]


def _macro(value: float, of: list[float], examples: list[int], drawn: np.ndarray | None = None) -> ci.Scored:
    """A model's macro mean over two classes, by default one that no resample changes."""
    by_class = {"f1": ci.ByClass(np.array(of), np.array(examples), 2)}
    drawn = np.full(100, value) if drawn is None else drawn
    return ci.Scored({"f1": value}, {"f1": drawn}, {}, {"f1": sum(examples)}, by_class, {"f1": (0.0, 1.0)})


def test_a_class_counts_as_the_model_with_fewest_examples_of_it_has() -> None:
    """For example precision, a share of what each model predicted: five texts, and a hundred."""
    few, many = _macro(0.75, [0.5, 1.0], [395, 5]), _macro(0.25, [0.5, 0.0], [300, 100])
    for pair in ([few], [many]), ([many], [few]):
        error = (np.var([0.5] * 11 + [0.0, 0.0, -0.5]) / 7) ** 0.5  # five texts, and four that count half
        assert difference("f1", *pair).of_examples == pytest.approx(error)


def test_a_class_has_the_mean_number_of_examples_over_seeds() -> None:
    seeds = [_macro(0.75, [0.5, 1.0], [100, examples]) for examples in (5, 15)]
    half = (1 - ci.wilson_interval(1.0, 10)["low"]) / 2
    assert ci.intervals(seeds)["f1"]["low_examples"] == pytest.approx(0.75 - half)


def test_a_macro_mean_of_few_examples_is_wider_than_its_resamples_too() -> None:
    drawn = np.linspace(0.4, 0.6, 401)
    found = ci.intervals([_macro(0.5, [0.5, 0.5], [2, 3], drawn)])["f1"]
    among = 0.25 / (ci.widening(5) * float(np.std(drawn, ddof=1))) ** 2
    assert found == pytest.approx(ci.wilson_interval(0.5, among))


def test_a_difference_is_within_what_the_scale_allows() -> None:
    """Fractions of 0.95 and 0.05, either way round; and correlations, which go from -1 to 1."""
    spread = np.array([-0.4, 0.0, 0.4])
    for scale, most in (("fraction", 1.0), ("correlation", 0.9 + 0.4 * 1.959964)):
        high, low = (
            [ci.Scored({"f1": value}, {"f1": spread * of}, ends={"f1": SCALES[scale].ends})]
            for value, of in ((0.95, 1), (0.05, 0))
        )
        legend = {"f1": Figure(scale, "higher")}
        (falls,), (rises,) = compare({"a": low, "b": high}, legend), compare({"a": high, "b": low}, legend)
        assert (rises.low, rises.high) == pytest.approx((0.9 - 0.4 * 1.959964, most))
        assert (falls.low, falls.high) == pytest.approx((-rises.high, -rises.low))


def test_a_figure_without_examples_is_as_uncertain_as_with_one_and_not_unknown() -> None:
    nothing = ci.Scored({"recall": 0.0}, {}, {"recall": ci.Share(np.zeros(4, bool), np.zeros(4, bool))}, {"f1": 0})
    assert [nothing.examples_of(name) for name in ("recall", "f1", "other")] == [1, 1, 0]


def test_with_a_single_example_a_macro_mean_may_be_anything() -> None:
    """The only text is of a class with an F1 of 1, and the other class has no text."""
    assert ci.intervals([_macro(0.5, [1.0], [1])])["f1"] == {"low": 0.0, "high": 1.0}


def test_a_difference_on_few_examples_is_less_certain_than_its_resamples() -> None:
    """Five: Student's t with four degrees of freedom, and N - 1 in the variance; an unknown number changes nothing."""
    spread, wide = np.array([-0.3, 0.0, 0.3]), 2.776445 / 1.959964 * (5 / 4) ** 0.5
    for examples, times in ((5, wide), (0, 1.0)):
        first, second = (ci.Scored({"f1": 0.5}, {"f1": 0.5 + of * spread}, {}, {"f1": examples}) for of in (2, 1))
        assert difference("f1", [first], [second]).reach() == pytest.approx(1.959964 * 0.3 * times)


def test_what_could_be_shown_is_said_for_all_pairs_together() -> None:
    """Three methods make three pairs, two methods make one: 2.39 and 1.96 standard errors, and 0.84."""
    spread = np.array([-0.1, 0.0, 0.1])
    methods = {name: [ci.Scored({"f1": 0.5}, {"f1": of * spread})] for name, of in (("a", 1), ("b", 0), ("c", 2))}
    two = {name: methods[name] for name in "ab"}
    found = [compare(of, {"f1": Figure("fraction", "higher")})[0].detectable for of in (two, methods)]
    assert found == pytest.approx([0.1 * (1.959964 + 0.841621), 0.1 * (2.393980 + 0.841621)])
