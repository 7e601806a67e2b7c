from collections.abc import Mapping, Sequence

import pytest

from retrace.evaluation.records import Details
from retrace.perplexity.measures import PerplexityReport
from retrace.report.results import Task, read_tasks
from retrace.report.summary import summary_table, verdict
from retrace.statistics.scales import Comparison, Figure
from tests.study import method_of

PLACES = {"full": 0, "scratch": 1, "lora": 2, "adapter": 3}
ACCURACY = Figure("fraction", "higher", "accuracy")
FIGURES = {"perplexity_per_word": 1.0, "bits_per_byte": 1.0}


def _task(
    means: Mapping[str, float], pairs: Sequence[tuple[str, str, float, str]] = (), seeds: int = 2, name: str = "sst2",
    baseline: float = 0.5, flags: Sequence[str] = (), figure: Figure = ACCURACY,
) -> Task:  # fmt: skip
    """Methods by their mean accuracy, with intervals of 0.02 to both sides; pairs have a difference and a verdict.

    So have the differences to baselines: TF-IDF with an accuracy of `baseline`, and a worse one. Every seed has
    the flags.
    """

    def around(value: float) -> dict[str, float]:
        return {"low": value - 0.02, "high": value + 0.02}

    baselines, methods = {"majority": baseline - 0.1, "tfidf": baseline}, {}
    for method, mean in means.items():
        of = {"figures": {"accuracy": mean}, "intervals": {"accuracy": around(mean)}}
        seed = of | {"epoch": 1, "before": {}, "flags": dict.fromkeys(flags, "")}
        ahead = {name: around(mean - value) for name, value in baselines.items()}
        methods[method] = method_of(seeds={str(n): seed for n in range(seeds)}, std={}, **of) | {"ahead": ahead}
    details = Details.from_json({name: {
        "headlines": ["accuracy"], "legend": {"accuracy": figure}, "methods": methods,
        "baselines": {name: {"figures": {"accuracy": value}, "intervals": {"accuracy": around(value)}}
                      for name, value in baselines.items()},
        "comparisons": [
            Comparison("accuracy", first, second, "methods", value, **around(value), test="t", p=0.1, p_corrected=0.1,
                       verdict=verdict, detectable=0.1)
            for first, second, value, verdict in pairs
        ],
    }})  # fmt: skip
    return Task(name, "classification", details.tasks[name], PLACES)


def _said(*tasks: Task, perplexity: PerplexityReport | None = None, **shares: float) -> list[str]:
    return [sentence.replace("**", "") for sentence in verdict(tasks, perplexity, shares)]


def test_pretraining_is_worth_the_difference_to_random_weights() -> None:
    first = _task({"full": 0.9, "scratch": 0.7}, [("full", "scratch", 0.2, "full")])
    second = _task({"full": 0.8, "scratch": 0.7}, [("scratch", "full", -0.1, "full")], name="news")
    assert _said(first, second)[0] == (
        "Pretraining is worth +20.0 points of accuracy on reviews (90.0 against 70.0) and +10.0 points of accuracy on "
        "news texts (80.0 against 70.0)."
    )


@pytest.mark.parametrize(("difference", "found"), [(0.01, "tie"), (-0.2, "scratch"), (0.2, "no difference shown")])
def test_pretraining_shows_no_certain_gain_where_methods_tie_or_it_lost(difference: float, found: str) -> None:
    task = _task({"full": 0.7 + difference, "scratch": 0.7}, [("full", "scratch", difference, found)])
    low, high = (f"{100 * (difference + by):+.1f}".replace("-", "−") for by in (-0.02, 0.02))
    value = f"{100 * difference:+.1f}".replace("-", "−")
    assert _said(task)[0] == f"Pretraining shows no certain gain on reviews ({value}, {low} to {high})."


def test_the_better_of_the_cheap_methods_stands_against_full_fine_tuning() -> None:
    pairs = [("lora", "full", 0.01, "tie"), ("full", "adapter", 0.05, "full")]
    task = _task({"full": 0.9, "lora": 0.91, "adapter": 0.85}, pairs)
    said = "LoRA trains 9.9% of the weights; against full fine-tuning it scores +1.0 points on reviews (a tie)."
    assert said in _said(task, lora=9.88, adapter=5.0)
    assert "Adapter trains 5.0% of the weights; against full fine-tuning it scores −5.0 points on reviews." in _said(
        task, adapter=5.0
    )
    assert not any("trains" in sentence for sentence in _said(task))


def test_who_is_not_above_a_baseline_is_named() -> None:
    weak = _task({"full": 0.9, "scratch": 0.49, "lora": 0.48, "adapter": 0.4})
    said = "Not above a baseline: Scratch and LoRA on reviews (tf-idf); Adapter on reviews (majority class and tf-idf)"
    assert f"{said}." in _said(weak)
    none = _task({"full": 0.49}, name="news")
    assert f"{said}; all methods on news texts (tf-idf)." in _said(weak, none)
    assert "Every method is above every baseline." in _said(_task({"full": 0.9}))


def test_a_baseline_that_is_not_beaten_is_named_where_the_best_one_is() -> None:
    task = _task({"full": 0.9})
    task.details.methods["full"].ahead["majority"] = {"low": -0.01, "high": 1.01}
    said = "Above a baseline in the mean, but not shown to be with 2 seeds: all methods on reviews (majority class)."
    assert said in _said(task)


def test_only_who_is_flagged_or_not_above_in_the_mean_is_called_not_above() -> None:
    means = {"full": 0.9, "scratch": 0.51, "lora": 0.49}
    low, open_ = "Not above a baseline:", "Above a baseline in the mean, but not shown to be with 2 seeds:"
    assert f"{low} LoRA on reviews (tf-idf). {open_} Scratch on reviews (tf-idf)." in _said(_task(means))
    flagged = _task(means, flags=["not_above_tfidf"])
    assert f"{low} Scratch and LoRA on reviews (tf-idf)." in _said(flagged)


def test_where_the_lowest_is_best_a_lower_score_is_a_gain() -> None:
    figure = Figure("fraction", "lower", "calibration error")
    task = _task({"full": 0.1, "scratch": 0.4}, [("full", "scratch", -0.3, "full")], baseline=0.3, figure=figure)
    assert task.methods == ["full", "scratch"]
    assert _said(task)[:2] == [
        "Pretraining is worth −30.0 points of calibration error on reviews (10.0 against 40.0).",
        "Not above a baseline: Scratch on reviews (majority class and tf-idf).",
    ]


def test_figures_have_the_digits_of_their_scale() -> None:
    figure = Figure("correlation", "higher", "Matthews correlation")
    task = _task({"full": 0.6346, "scratch": 0.5824}, [("full", "scratch", 0.0522, "full")], figure=figure)
    said = "Pretraining is worth +0.0522 of Matthews correlation on reviews (0.6346 against 0.5824)."
    assert _said(task)[0] == said
    first, *_ = summary_table([task], {}, {}).rows
    assert [str(cell) for cell in first[2:4]] == ["0.6346", "0.6146 – 0.6546"]
    assert task.score("full").said == "0.6346 (95% interval 0.6146 to 0.6546)"


def test_one_seed_is_said_to_be_one() -> None:
    said = "One seed: differences are of these models, and do not tell the methods apart."
    assert [_said(_task({"full": 0.9}, seeds=seeds))[-1] == said for seeds in (1, 2)] == [True, False]


@pytest.mark.parametrize(
    ("own", "beats", "said"),
    [
        (6.17, True, "The language model’s perplexity is 6.2 per token; a unigram model’s is 163."),
        (170.0, False, "The language model’s perplexity is 170.0 per token; a unigram model’s is 163, which it "
                       "does not beat."),
        (6.17, None, "The language model’s perplexity is 6.2 per token; a unigram model’s is 163."),
        (None, None, "The language model’s perplexity is not defined on this text."),
    ],
)  # fmt: skip
def test_the_perplexity_stands_beside_a_unigram_models(own: float | None, beats: bool | None, said: str) -> None:
    masked, unigram = ({"perplexity_per_token": value} | FIGURES for value in (own, 163.0))
    report = PerplexityReport.from_json(
        {"valid": {"masked": masked, "unigram": unigram, "beats_unigram": beats, "flags": {}}}
    )
    assert _said(perplexity=report) == [said]


def test_without_tasks_and_a_language_model_nothing_is_said() -> None:
    assert _said() == []


def test_what_is_on_a_test_set_of_further_questions_is_called_questions() -> None:
    grid = {"tasks": ["sst2"], "methods": ["full"], "questions": ["news"], "squad_methods": ["full"], "seeds": [1]}
    task = {"headlines": [], "legend": {}, "baselines": {}, "methods": {}, "comparisons": []}
    (found,) = read_tasks(Details.from_json({"news-test": task}), {"finetune": grid}, with_curves=False)
    assert (found.kind, found.noun) == ("question_answering", "news questions")


def test_a_method_of_one_task_is_listed_by_its_score_there() -> None:
    both = _task({"full": 0.8, "scratch": 0.7}, name="news")
    rows = summary_table([_task({"full": 0.9, "scratch": 0.7, "lora": 0.95}), both], {}, {}).rows
    assert [str(row[0]) for row in rows[:3]] == ["LoRA", "Full", "Scratch"]
