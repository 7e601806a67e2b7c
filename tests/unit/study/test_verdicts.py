"""Published figures beside Retrace's, worked by hand."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from retrace.core.errors import InputError
from retrace.core.files import write_json
from retrace.evaluation.records import Details
from retrace.perplexity.measures import PerplexityReport
from retrace.statistics.scales import Better, Figure
from retrace.study.comparison import Reports, compare_tables, evidence
from retrace.study.page import notices
from retrace.study.published import Cell, ComparedCell, Doubt, PublishedStudy, PublishedTable, Row, StudyResult, printed
from tests.study import RUN, cell_of, details_of

FULL = {"accuracy": 0.8, "exact_match": 60.0, "total": 96.0}
LORA = {"accuracy": 0.75, "exact_match": 70.0, "total": 96.0}
ENDS = {"accuracy": {"low": 0.75, "high": 0.86}}
TWO = {"seeds": {"1": {}, "2": {}}, "mean": {"accuracy": 0.804}, "std": {"accuracy": 0.01}, "intervals": ENDS}
DETAILS = details_of(
    {"accuracy": "fraction", "exact_match": "percentage", "total": "count"},
    {"full": {"seeds": {"1": FULL}, "mean": FULL, "intervals": ENDS}, "lora": {"seeds": {"1": LORA}, "mean": LORA},
     "two": TWO},
    {"accuracy": 0.5}, {"low": 0.45, "high": 0.55},
)  # fmt: skip
MASKED = {
    "perplexity_per_token": 9.0, "perplexity_per_word": None, "bits_per_byte": None,
    "intervals": {"perplexity_per_token": {"low": 8.0, "high": 11.0}},
}  # fmt: skip
PERPLEXITY = PerplexityReport.from_json({"valid": {"masked": MASKED, "beats_unigram": None, "flags": {}}})
REPORTS = Reports(DETAILS, {}, None, PERPLEXITY, {"pretrain": RUN}, {"sst2", "scratch"}, {})


def _study(scale: str, published: Any, address: str | None = "score.sst2.full.accuracy") -> PublishedStudy:
    table = PublishedTable("t", "Table", scale, ("c",), {"r": Row((address,), (published,))})
    return PublishedStudy("T", "S", (table,))


def _cell(scale: str, published: Any, address: str | None = "score.sst2.full.accuracy") -> ComparedCell:
    (compared,) = compare_tables(_study(scale, published, address), REPORTS).values()
    return compared.rows["r"]["c"]


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
        ("perplexity", "12", "perplexity.valid.masked.perplexity_per_token", "outside, one seed"),
        ("fraction", "0.7", "baseline.sst2.majority.accuracy", "beyond"),  # which has no seed
        ("percentage", "61.0", "score.sst2.full.exact_match", "no interval"),
        ("fraction", "0.6", "score.sst2.full.exact_match", "exact"),
        ("fraction", None, "score.sst2.full.accuracy", "no figure published"),
        ("fraction", "0.5", "score.sst2.scratch.accuracy", "not run"),
        ("fraction", "0.5", None, "not run"),
        ("count", "22,829,056", "formula.roberta-small.total", "exact"),
        ("count", "22,829,057", "formula.roberta-small.total", "beyond"),
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
    assert _cell(scale, published, address).verdict == verdict


def test_a_cell_is_on_the_tables_scale() -> None:
    assert _cell("percent", "76.12 ± 2.0").to_json() == {
        "verdict": "within", "scale": "percent", "printed": "76.12 ± 2.0", "shown": "80.00 (75.00 – 86.00)",
        "published": 76.12, "reproduced": 80.0, "published_std": 2.0, "interval": {"low": 75.0, "high": 86.0},
    }  # fmt: skip


def test_both_ends_of_a_range_stand_in_one_cell() -> None:
    cell = _cell("fraction", "0.80-0.70", "score.sst2.full.accuracy to score.sst2.lora.accuracy")
    assert (cell.printed, cell.shown) == ("0.80-0.70", "0.80 (0.75 – 0.86) to 0.75")
    assert (cell.published_end, cell.reproduced_end) == (0.7, 0.75)


def test_as_many_digits_are_shown_as_were_printed() -> None:
    assert _cell("mebibytes", "1.84e-2", "memory.full.per_token_pair").shown == "1.84e-02"
    assert _cell("count", "22M", "formula.roberta-small.total").shown == "22,829,056"
    assert _cell("percentage", "0", "score.sst2.full.exact_match").shown == "60.00", "none at all is no rounded 0.4"
    assert _cell("fraction", "0.8").shown == "0.8 (0.8 – 0.9)"
    assert _cell("fraction", "0.80000").shown == "0.80000 (0.75000 – 0.86000)"
    assert _cell("fraction", "1").shown == "0.8000 (0.7500 – 0.8600)"
    assert _cell("fraction", None).shown == "0.8000 (0.7500 – 0.8600)"


def test_a_share_is_on_a_scale_of_shares() -> None:
    message = r"^published\.yaml: tables: t: r: c: .*: scale: 'score' is not allowed; it is on the scale fraction$"
    with pytest.raises(InputError, match=message):
        _cell("score", "0.8")


def test_times_are_on_the_page_alone(tmp_path: Path) -> None:
    tables = compare_tables(_study("seconds", "46", "run.pretrain.seconds"), REPORTS)
    assert tables["t"].rows["r"]["c"].reproduced == 46.3
    result = StudyResult(title="T", source="S", small=True, tables=tables)
    write_json(tmp_path / "study.json", result.to_json())
    ((*place, cell),) = StudyResult.read(tmp_path / "study.json").cells()
    assert place == ["t", "r", "c"]
    assert cell == cell_of("of this machine", "seconds", "46", published=46.0)


def test_an_address_that_leads_nowhere_is_named_with_its_place() -> None:
    with pytest.raises(InputError) as caught:
        compare_tables(_study("fraction", "0.5", "score.sst2.full.f1"), REPORTS)
    assert str(caught.value) == (
        "published.yaml: tables: t: r: c: score.sst2.full.f1: 'f1' is not there; there is: accuracy, exact_match, total"
    )


def _evidence(**figures: str) -> list[dict[str, str]]:
    doubt = Doubt("t", "says", "finding", figures)
    return evidence(replace(_study("fraction", "0.8"), doubts=(doubt,)), REPORTS)


def test_evidence_has_its_own_scale_and_its_place() -> None:
    both = "score.sst2.full.exact_match to score.sst2.lora.exact_match"
    assert _evidence(here="score.sst2.full.exact_match", absent="score.sst2.scratch.exact_match", both=both) == [
        {"here": "60.00", "absent": "", "both": "60.00 to 70.00"}
    ]
    assert _evidence(half=both.replace("lora", "scratch")) == [{"half": ""}], "one end was not run"
    message = r"^published\.yaml: doubts\[0\]: x: score\.sst2: it has to go on, with one of full, lora, two$"
    with pytest.raises(InputError, match=message):
        _evidence(x="score.sst2")


def _best(table: dict[str, Any], reports: Reports = REPORTS) -> dict[str, set[tuple[str, str]]]:
    made = PublishedTable("t", "Table", **table)
    return compare_tables(PublishedStudy("T", "S", (made,)), reports)["t"].best


GRID: dict[str, Any] = {
    "scale": "percentage", "columns": {"accuracy": "accuracy", "exact": "exact_match"},
    "rows": {"Full": Row("score.sst2.full.{column}", ("80.0", "50.0")),
             "LoRA": Row("score.sst2.lora.{column}", ("90.0", "50.0"))},
    "best": "column",
}  # fmt: skip


def test_the_best_of_each_column() -> None:
    assert _best({**GRID, "best": None}) == {}
    assert _best(GRID) == {
        "published": {("LoRA", "accuracy"), ("Full", "exact"), ("LoRA", "exact")},
        "reproduced": {("Full", "accuracy"), ("LoRA", "exact")},
    }
    alone = {"r": Row(("score.sst2.full.accuracy",), ("0.5",))}
    assert _best({"scale": "fraction", "columns": ("c",), "rows": alone, "best": "column"})["published"] == set()
    losses = {"r": Row((None,), ("0.9",)), "s": Row((None,), ("0.5",))}
    table = {"scale": "loss", "columns": ("c",), "rows": losses, "best": "column"}
    assert _best(table)["published"] == {("s", "c")}, "the lowest"


@pytest.mark.parametrize(("better", "best"), [("higher", {"Full"}), ("lower", {"LoRA"}), ("neither", set())])
def test_the_best_is_the_one_that_the_score_calls_so(better: Better, best: set[str]) -> None:
    legend = {"accuracy": Figure("fraction", better), "exact_match": Figure("percentage", "neither")}
    task = DETAILS.tasks["sst2"].model_copy(update={"legend": legend})
    reports = replace(REPORTS, details=Details(tasks={"sst2": task}))
    assert _best(GRID, reports)["reproduced"] == {(row, "accuracy") for row in best}


def _noticed(scale: str, figures: dict[str, str], kind: str = "score") -> list[str]:
    cells = [Cell("r", name, f"{kind}.squad.full.{name}", printed(value), scale) for name, value in figures.items()]
    return notices({"t": cells})


@pytest.mark.parametrize(
    ("scale", "figures", "said"),
    [
        ("fraction", {"accuracy": "0.5092", "precision": "0.5092", "recall": "1.0", "f1": "0.6748"},
         "recall without accuracy: recall 1 with accuracy 0.5092, as of one class for all"),
        ("percent", {"accuracy": "55.1", "precision": "55.1", "recall": "100.0"},
         "recall without accuracy: recall 1 with accuracy 0.551, as of one class for all"),
        ("percentage", {"exact_match": "0.13263", "f1": "0.001326"},
         "f1 below exact match: F1 0.001326 below exact match 0.1326, which it includes"),
        ("fraction", {"exact_match": "0.072", "f1": "0.02748"},
         "f1 below exact match: F1 2.748 below exact match 7.2, which it includes"),
        ("percent", {"exact_match": "0.0", "f1": "75.0"}, "f1 without exact match: F1 75 with exact match 0"),
        ("fraction", {"rouge1": "754.0"}, "off scale: rouge1 754 is not a fraction"),
        ("percent", {"f1_macro": "754.0"}, "off scale: f1_macro 754 is not a percentage"),
        # These may be right.
        ("fraction", {"accuracy": "0.8451", "precision": "0.8503", "recall": "0.8445", "f1": "0.8474"}, None),
        ("percentage", {"exact_match": "7.479", "f1": "12.105"}, None),
        ("perplexity", {"perplexity_per_token": "124.0"}, None),
        ("percentage", {"exact_match": "0.13263", "f1": "0.1326"}, None),  # may be equal, as they were rounded
        ("percentage", {"exact_match": "7", "f1": "6.9"}, None),
        ("score", {"bleu_length_ratio": "5.600185294"}, None),
    ],
)  # fmt: skip
def test_figures_that_cannot_be_right_are_noticed(scale: str, figures: dict[str, str], said: str | None) -> None:
    assert _noticed(scale, figures) == ([f"t: squad full: {said}"] if said else [])


def test_only_figures_of_one_model_are_set_side_by_side() -> None:
    addresses = {"before.squad.full.exact_match": "60.0", "score.squad.full.f1": "30.0",
                 "score.squad.lora.exact_match": "50.0", "epoch.squad.full.1.exact_match": "70.0",
                 "baseline.squad.no_answer.exact_match": "90.0"}  # fmt: skip
    cells = [Cell(address, "c", address, printed(value), "percentage") for address, value in addresses.items()]
    cells.append(Cell("none", "c", None, printed("1.0"), "percentage"))
    assert notices({"t": cells}) == []


def test_what_is_before_training_is_called_so() -> None:
    (line,) = _noticed("percentage", {"exact_match": "60.0", "f1": "30.0"}, "before")
    assert line.startswith("t: before training squad full: f1 below exact match: ")
