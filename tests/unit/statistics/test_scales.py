from retrace.statistics.scales import Shortfall, factor


def test_figures_change_scale_by_the_whole() -> None:
    assert factor("fraction", "percentage") == 100
    assert factor("percent", "fraction") == 0.01
    assert factor("percentage", "percent") == 1
    assert factor("perplexity", "fraction") == factor("fraction", "perplexity") == 1


def test_a_shortfall_is_one_sentence_of_few_digits() -> None:
    found = Shortfall("F1", 51.81249, "before_training", 50.0, -0.123456, 3.74852, "of 40 questions")
    assert str(found) == ("F1 51.81, before training 50; difference 1.81 (95% interval -0.123 to 3.75) of 40 questions")
    assert str(Shortfall("loss", 2.0, "unigram", 3.0, -2.0, 0.0)).endswith("difference -1 (95% interval -2 to 0)")
