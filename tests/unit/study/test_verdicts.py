"""Published figures beside Retrace's, worked by hand."""

from dataclasses import replace
from typing import Any

import pytest

from retrace.core.errors import InputError
from retrace.study.addresses import Reports
from retrace.study.published import Doubt, PublishedStudy, PublishedTable, Row
from retrace.study.verdicts import best_cells, cells_of, compare_tables, evidence, rows_json, study_json

FULL, LORA = {"accuracy": 0.8, "exact": 60.0, "total": 96.0}, {"accuracy": 0.75, "exact": 70.0, "total": 96.0}
TWO = {"mean": {"accuracy": 0.804}, "sd": {"accuracy": 0.01}}
METRICS = {
    "sst2": {
        "baselines": {"majority": {"accuracy": 0.5}}, "full": {"1": FULL, "mean": FULL},
        "lora": {"1": LORA, "mean": LORA}, "two": TWO,
    }
}  # fmt: skip
SCORES = {
    "sst2": {
        "scales": {"accuracy": "fraction", "exact": "percentage", "total": "count"},
        "methods": {
            "full": {"intervals": {"accuracy": {"low": 0.75, "high": 0.86}}, "seeds": {"1": {}}},
            "lora": {"intervals": {}, "seeds": {"1": {}}},
            "two": {"intervals": {"accuracy": {"low": 0.75, "high": 0.86}}, "seeds": {"1": {}, "2": {}}},
        },
        "baselines": {"majority": {"accuracy": {"low": 0.45, "high": 0.55}}},
    }
}
PERPLEXITY = {"valid": {"masked": {"per_token": 9.0, "interval": {"per_token": {"low": 8.0, "high": 11.0}}}}}
RUNS = {"pretrain": {"seconds": 46.3, "updates": 686}}
REPORTS = Reports(METRICS, SCORES, {}, None, PERPLEXITY, RUNS, {"sst2", "scratch"}, lambda address: 7.0)


def _study(scale: str, published: Any, address: str | None = "score.sst2.full.accuracy") -> PublishedStudy:
    table = PublishedTable("t", "Table", scale, ("c",), {"r": Row((address,), (published,))})
    return PublishedStudy("T", "S", (table,))


def _cell(scale: str, published: Any, address: str | None = "score.sst2.full.accuracy") -> dict[str, Any]:
    (compared,) = compare_tables(_study(scale, published, address), REPORTS).values()
    return rows_json(compared)["r"]["c"]


@pytest.mark.parametrize(
    ("scale", "published", "address", "verdict"),
    [
        ("fraction", "0.8", "score.sst2.full.accuracy", "exact"),
        ("fraction", "0.80", "score.sst2.two.accuracy", "exact"),
        ("fraction", "0.8000", "score.sst2.two.accuracy", "within"),  # 0.804 is not 0.8000
        ("fraction", "1", "score.sst2.two.accuracy", "beyond"),  # nor is it 1, which it would be rounded to
        ("percent", "80.0", "score.sst2.full.accuracy", "exact"),
        ("percent", "76.1 ± 2.0", "score.sst2.two.accuracy", "within"),
        ("percent", "75.0", "score.sst2.two.accuracy", "within"),  # the ends belong to it
        ("percent", "74.99", "score.sst2.two.accuracy", "beyond"),
        ("percent", "75.0", "score.sst2.full.accuracy", "within"),
        ("percent", "74.99", "score.sst2.full.accuracy", "outside, one seed"),
        ("fraction", "0.87", "score.sst2.full.accuracy", "outside, one seed"),
        ("perplexity", "12", "perplexity.valid.masked.per_token", "outside, one seed"),
        ("fraction", "0.7", "baseline.sst2.majority.accuracy", "beyond"),  # which has no seed
        ("percentage", "61.0", "score.sst2.full.exact", "no interval"),
        ("percentage", "0", "score.sst2.full.exact", "no interval"),
        ("fraction", "0.6", "score.sst2.full.exact", "exact"),
        ("fraction", None, "score.sst2.full.accuracy", "no figure published"),
        ("fraction", "0.5", "score.sst2.scratch.accuracy", "not run"),
        ("fraction", "0.5", None, "not run"),
        ("count", "7", "formula.bert-base.total", "exact"),
        ("count", "8", "formula.bert-base.total", "beyond"),
        ("count", "686", "run.pretrain.updates", "exact"),
        ("seconds", "46", "run.pretrain.seconds", "of this machine"),
        # Ranges: both ends beside one figure, or each beside its own.
        ("fraction", "0.75-0.85", "score.sst2.full.accuracy", "in the range"),
        ("fraction", "0.83-0.85", "score.sst2.full.accuracy", "within"),
        ("fraction", "0.62-0.65", "score.sst2.full.accuracy", "outside, one seed"),
        ("fraction", "0.62-0.65", "score.sst2.two.accuracy", "beyond"),
        ("fraction", "0.80-0.75", "score.sst2.full.accuracy to score.sst2.lora.accuracy", "exact"),
        ("fraction", "0.77-0.75", "score.sst2.full.accuracy to score.sst2.lora.accuracy", "within"),
        ("fraction", "0.80-0.70", "score.sst2.full.accuracy to score.sst2.lora.accuracy", "no interval"),
        ("fraction", "0.80-0.75", "score.sst2.full.accuracy to score.sst2.scratch.accuracy", "not run"),
    ],
)
def test_verdicts(scale: str, published: str | None, address: str | None, verdict: str) -> None:
    assert _cell(scale, published, address)["verdict"] == verdict


def test_a_cell_is_on_the_tables_scale() -> None:
    assert _cell("percent", "76.12 ± 2.0") == {
        "verdict": "within", "scale": "percent", "printed": "76.12 ± 2.0", "shown": "80.00 (75.00 – 86.00)",
        "published": 76.12, "reproduced": 80.0, "published_sd": 2.0, "interval": {"low": 75.0, "high": 86.0},
    }  # fmt: skip


def test_both_ends_of_a_range_stand_in_one_cell() -> None:
    cell = _cell("fraction", "0.80-0.7", "score.sst2.full.accuracy to score.sst2.lora.accuracy")
    assert (cell["printed"], cell["shown"]) == ("0.80-0.7", "0.80 (0.75 – 0.86) to 0.75")
    assert (cell["published_end"], cell["reproduced_end"]) == (0.7, 0.75)


def test_two_addresses_are_of_a_range() -> None:
    with pytest.raises(ValueError, match=r"^r: c: .*: two addresses are of a range, such as 124 to 99$"):
        _study("fraction", "0.80", "score.sst2.full.accuracy to score.sst2.lora.accuracy")


def test_as_many_digits_are_shown_as_were_printed() -> None:
    assert _cell("mebibytes", "1.84e-2", "memory.full.per_token_pair")["shown"] == "7.00e+00"
    assert _cell("count", "109,482,240", "formula.bert-base.total")["shown"] == "7"
    assert _cell("fraction", "0.8")["shown"] == "0.8 (0.8 – 0.9)"
    assert _cell("fraction", "0.80000")["shown"] == "0.80000 (0.75000 – 0.86000)"
    assert _cell("fraction", "1")["shown"] == "0.8000 (0.7500 – 0.8600)"
    assert _cell("fraction", None)["shown"] == "0.8000 (0.7500 – 0.8600)"


def test_a_share_is_on_a_scale_of_shares() -> None:
    message = r"^published\.yaml: tables: t: r: c: .*: scale: 'score' is not allowed; it is on the scale fraction$"
    with pytest.raises(InputError, match=message):
        _cell("score", "0.8")


def test_times_are_on_the_page_alone() -> None:
    study = _study("seconds", "46", "run.pretrain.seconds")
    compared = compare_tables(study, REPORTS)
    ((*place, cell),) = cells_of(study_json(study, "small", compared))
    assert place == ["t", "r", "c"]
    assert (cell["reproduced"], cell["verdict"]) == (None, "of this machine")
    assert rows_json(compared["t"], is_timed=True)["r"]["c"]["reproduced"] == 46.3


def test_an_address_that_leads_nowhere_is_named_with_its_place() -> None:
    with pytest.raises(InputError) as caught:
        compare_tables(_study("fraction", "0.5", "score.sst2.full.f1"), REPORTS)
    assert str(caught.value) == (
        "published.yaml: tables: t: r: c: score.sst2.full.f1: 'f1' is not there; there is: accuracy, exact, total"
    )


def test_evidence_has_its_own_scale_and_its_place() -> None:
    doubt = Doubt("t", "says", "finding", {"here": "score.sst2.full.exact", "not here": "score.sst2.scratch.exact",
                                              "both": "score.sst2.full.exact to score.sst2.lora.exact"})  # fmt: skip
    found = evidence(doubt, 0, REPORTS)
    (here,) = found["here"]
    assert here is not None
    assert (here.value, here.scale) == (60.0, "percentage")
    assert found["not here"] == [None]
    assert [each and each.value for each in found["both"]] == [60.0, 70.0]
    with pytest.raises(InputError, match=r"^published\.yaml: doubts\[3\]: x: score\.sst2: expected score\.<task>"):
        evidence(Doubt("t", "says", "finding", {"x": "score.sst2"}), 3, REPORTS)


def _grid(best: Any, scale: Any = "percentage") -> dict[str, set[tuple[str, str]]]:
    table = PublishedTable(
        "t", "Table", scale, {"accuracy": "accuracy", "exact": "exact"}, {"Full": "full", "LoRA": "lora"},
        figures="score.sst2.{row}.{column}", best=best, published={"Full": ("80.0", "50.0"), "LoRA": ("90.0", "50.0")},
    )  # fmt: skip
    return best_cells(table, compare_tables(PublishedStudy("T", "S", (table,)), REPORTS)["t"])


def test_the_best_of_each_column_and_row() -> None:
    assert _grid(None) == {"published": set(), "reproduced": set()}
    assert _grid("column") == {
        "published": {("LoRA", "accuracy"), ("Full", "exact"), ("LoRA", "exact")},
        "reproduced": {("Full", "accuracy"), ("LoRA", "exact")},
    }
    assert _grid("row")["reproduced"] == {("Full", "accuracy"), ("LoRA", "accuracy")}


@pytest.mark.parametrize(("better", "best"), [("higher", {"Full"}), ("lower", {"LoRA"}), ("neither", set())])
def test_the_best_is_the_one_that_the_score_calls_so(better: str, best: set[str]) -> None:
    reports = replace(REPORTS, scores={"sst2": {**SCORES["sst2"], "better": {"accuracy": better}}})
    table = PublishedTable("t", "Table", "fraction", {"accuracy": "accuracy"}, {"Full": "full", "LoRA": "lora"},
                           figures="score.sst2.{row}.{column}", best="column",
                           published={"Full": ("0.8",), "LoRA": ("0.9",)})  # fmt: skip
    compared = compare_tables(PublishedStudy("T", "S", (table,)), reports)["t"]
    assert best_cells(table, compared)["reproduced"] == {(row, "accuracy") for row in best}


def test_one_figure_alone_is_not_the_best() -> None:
    table = PublishedTable("t", "Table", "fraction", ("c",), {"r": Row(("score.sst2.full.accuracy",), ("0.5",))},
                           best="column")  # fmt: skip
    compared = compare_tables(PublishedStudy("T", "S", (table,)), REPORTS)["t"]
    assert best_cells(table, compared) == {"published": set(), "reproduced": set()}


def test_the_best_loss_is_the_lowest() -> None:
    table = PublishedTable("t", "Table", "loss", ("c",), {"r": Row((None,), ("0.9",)), "s": Row((None,), ("0.5",))},
                           best="column")  # fmt: skip
    assert best_cells(table, compare_tables(PublishedStudy("T", "S", (table,)), REPORTS)["t"])["published"] == {
        ("s", "c")
    }
