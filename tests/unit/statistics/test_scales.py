import math

from retrace.statistics.scales import SCALES, Shortfall, factor


def test_figures_change_scale_by_the_whole() -> None:
    assert factor("fraction", "percentage") == 100
    assert factor("percent", "fraction") == 0.01
    assert factor("percentage", "percent") == 1
    assert factor("perplexity", "fraction") == factor("fraction", "perplexity") == 1


def test_a_shortfall_is_one_sentence_of_few_digits() -> None:
    found = Shortfall("F1", 51.81249, "before_training", 50.0, -0.123456, 3.74852, "of 40 questions")
    assert str(found) == ("F1 51.81, before training 50; difference 1.81 (95% interval -0.123 to 3.75) of 40 questions")
    assert str(Shortfall("loss", 2.0, "unigram", 3.0, -2.0, 0.0)).endswith("difference -1 (95% interval -2 to 0)")


def test_shares_and_correlations_end_and_losses_are_best_low() -> None:
    ends = {name: scale.ends for name, scale in SCALES.items() if math.isfinite(scale.ends[0])}
    assert ends == {"fraction": (0, 1), "percentage": (0, 100), "correlation": (-1, 1), "count": (0, math.inf)}
    assert {name for name, scale in SCALES.items() if not scale.is_best_high} == {
        "perplexity", "loss", "seconds", "mebibytes"
    }  # fmt: skip


def test_a_percentage_shows_what_a_fraction_does_and_a_count_is_whole() -> None:
    assert SCALES["fraction"].digits == SCALES["correlation"].digits == SCALES["percentage"].digits + 2 == 4
    assert {name for name, scale in SCALES.items() if scale.digits == 0} == {"count", "seconds", "mebibytes"}
