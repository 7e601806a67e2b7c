"""Figures by address, from reports written by hand and counted; and published figures beside them, worked by hand."""

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from retrace.core.errors import InputError
from retrace.core.files import write_json
from retrace.core.settings import plugin_names
from retrace.evaluation.records import Details
from retrace.finetuning.settings import METHODS
from retrace.perplexity.measures import PerplexityReport
from retrace.statistics.scales import Better, Figure
from retrace.study.comparison import Reports, Reproduced, compare_tables, counted, evidence, find_figure
from retrace.study.page import notices
from retrace.study.published import (
    ComparedCell,
    Doubt,
    PublishedCell,
    PublishedStudy,
    PublishedTable,
    Row,
    StudyResult,
    printed,
)
from tests.study import RUN, cell_of, details_of

FULL, LORA = {"accuracy": 0.8, "exact_match": 60.0}, {"accuracy": 0.75, "exact_match": 70.0}
ENDS, AROUND, WIDE = {"low": 0.75, "high": 0.86}, {"low": 0.45, "high": 0.55}, {"low": 8.0, "high": 11.0}
TWO = {
    "seeds": {"1": {"accuracy": 0.7, "validation_loss": 0.3, "meteor_x": 0.1},
              "2": {"accuracy": 0.9, "validation_loss": 0.5, "meteor_x": 0.1}},
    "mean": {"accuracy": 0.804, "validation_loss": 0.4, "meteor_x": 0.1}, "std": {"accuracy": 0.01},
    "before": {"1": {"accuracy": 0.25}, "2": {"accuracy": 0.75}},
    "intervals": {"accuracy": ENDS | {"low_examples": 0.7, "high_examples": 0.8}},
}  # fmt: skip
DETAILS = details_of(
    {"accuracy": "fraction", "exact_match": "percentage", "meteor_x": "fraction"},
    {"full": {"seeds": {"1": FULL}, "mean": FULL, "intervals": {"accuracy": ENDS}},
     "lora": {"seeds": {"1": LORA}, "mean": LORA}, "two": TWO},
    {"accuracy": 0.5}, AROUND,
)  # fmt: skip
CURVE = pd.DataFrame({
    "method": "two", "seed": ["1", "1", "2", "2"], "epoch": [0, 1, 0, 1],
    "training_loss": [math.nan, 0.5, math.nan, 0.6], "validation_loss": 0.7, "accuracy": [0.2, 0.7, 0.4, 0.9],
})  # fmt: skip
PRETRAINING = pd.DataFrame({"epoch": [0, 1], "training_loss": [math.nan, 5.0], "validation_loss": [6.0, 4.0],
                            "perplexity": [403.4, 54.6], "seconds": [3, 9]})  # fmt: skip
MASKED = {"perplexity_per_token": 9.0, "perplexity_per_word": None, "bits_per_byte": None,
          "intervals": {"perplexity_per_token": WIDE}}  # fmt: skip
UNIGRAM = {"perplexity_per_token": 160.0, "perplexity_per_word": 210.0, "bits_per_byte": 1.6,
           "intervals": {"perplexity_per_token": {"low": 150.0, "high": 170.0}}}  # fmt: skip
PERPLEXITY = {"valid": {"masked": MASKED, "unigram": UNIGRAM, "beats_unigram": True, "flags": {}}}
REPORTS = Reports(
    DETAILS, {"sst2": CURVE}, PRETRAINING, PerplexityReport.from_json(PERPLEXITY),
    {"pretrain": RUN, "sst2 full 1": RUN.model_copy(update={"updates": 471})},
    {"sst2", "squad", "two", "scratch", "pretrain"}, {},
)  # fmt: skip


def test_figures() -> None:
    expected = {
        "score.sst2.two.accuracy": Reproduced(0.804, "fraction", 0.01, ENDS, better="higher"),
        "score.sst2.two.meteor*": Reproduced(0.1, "fraction", 0.0, better="higher"),
        "baseline.sst2.majority.accuracy": Reproduced(0.5, "fraction", interval=AROUND, better="higher"),
        "pretraining.1.perplexity": Reproduced(54.6, "perplexity", better="lower"),
        "pretraining.0.validation_loss": Reproduced(6.0, "loss", better="lower"),
        "perplexity.valid.masked.perplexity_per_token": Reproduced(9.0, "perplexity", interval=WIDE, better="lower"),
        "perplexity.valid.unigram.bits_per_byte": Reproduced(1.6, "score", better="lower"),
        "run.pretrain.seconds": Reproduced(46.3, "seconds", is_timed=True),
        "run.pretrain.peak_memory_mib": Reproduced(673.0, "mebibytes", is_timed=True),
        "run.sst2.full.1.updates": Reproduced(471.0, "count", is_exact=True),
        "run.sst2.full.1.tokens": Reproduced(9000.0, "count", is_exact=True),
        "parameters.llama-3.2-1b.none.full.total": Reproduced(1_235_814_400, "count", is_exact=True),
        "perplexity.valid.masked.perplexity_per_word": None,
        # In params.yaml, but not run.
        "score.squad.two.f1": None,
        "score.sst2.scratch.accuracy": None,
        "epoch.sst2.two.2.accuracy": None,
        "run.squad.two.1.seconds": None,
    }
    assert {address: find_figure(address, REPORTS) for address in expected} == expected


@pytest.mark.parametrize(
    ("address", "value", "std"),
    [("before.sst2.two.accuracy", 0.5, 0.5**0.5 / 2), ("epoch.sst2.two.1.accuracy", 0.8, 0.02**0.5),
     ("epoch.sst2.two.1.training_loss", 0.55, 0.005**0.5), ("score.sst2.two.validation_loss", 0.4, 0.02**0.5)],
)  # fmt: skip
def test_means_over_seeds_have_students_interval(address: str, value: float, std: float) -> None:
    found = find_figure(address, REPORTS)
    assert found is not None
    assert (found.value, found.std) == pytest.approx((value, std))
    reach = 12.706204736 * std / 2**0.5  # of two seeds
    low, high = (0.0, 1.0) if found.scale == "fraction" else (-math.inf, math.inf)
    assert found.interval == pytest.approx({"low": max(low, value - reach), "high": min(high, value + reach)})


def test_a_seed_alone_has_no_interval_and_what_one_seed_lacks_has_no_mean() -> None:
    def found(curve: pd.DataFrame) -> Reproduced | None:
        return find_figure("epoch.sst2.two.1.accuracy", replace(REPORTS, curves={"sst2": curve}))

    assert found(CURVE.head(2)) == Reproduced(0.7, "fraction", better="higher")
    assert found(CURVE.assign(accuracy=[0.2, 0.7, 0.4, math.nan])) is None


@pytest.mark.parametrize("address", ["pretraining.1.perplexity", "perplexity.valid.masked.perplexity_per_token"])
def test_without_pretraining_nothing_of_it_is_there(address: str) -> None:
    assert find_figure(address, replace(REPORTS, pretraining=None, perplexity=None)) is None


def test_an_unknown_address_lists_the_choices() -> None:
    methods = ", ".join(sorted([*plugin_names(METHODS), "mine"]))
    for address, message in {
        "scores.sst2.two.f1": "'scores' not found; expected one of score, before, epoch, baseline, pretraining, ",
        "score.sst2.two": "the address is incomplete; continue with one of accuracy, validation_loss, meteor_x",
        "score.sst2.two.accuracy.mean.x": "the address is too long; leave out mean.x",
        "score.sst3.two.accuracy": "'sst3' not found; expected one of sst2",
        "score.sst2.entire.accuracy": "'entire' not found; expected one of full, lora, two",
        "score.sst2.two.f1": "'f1' not found; expected one of accuracy, validation_loss, meteor_x",
        "score.sst2.two.rouge*": "'rouge*' not found; expected one of accuracy",
        "score.sst2.two.*": "'*' not found; expected one of accuracy",  # which of the three is not said
        "epoch.sst2.two.first.accuracy": "'first' not found; expected one of 0, 1",
        "epoch.sst2.two.0.training_loss": "'training_loss' not found; expected one of validation_loss, accuracy",
        "epoch.sst2.two.1.seed": "'seed' not found; expected one of training_loss, validation_loss, accuracy",
        "pretraining.1.seconds": "'seconds' not found; expected one of training_loss, validation_loss, perplexity",
        "perplexity.valid.flags.perplexity_per_token": "'flags' not found; expected one of masked, unigram",
        "run.pretrain.device": "'device' not found; expected one of updates, seconds, tokens_per_second, ",
        "parameters.bert-base.total": "expected parameters.<model>.<head>.<method>.<figure>",
        "parameters.bert.none.full.total": "model: 'bert' not found; expected one of bert-base, llama-3.2-1b, ",
        "parameters.bert-base.ner.full.total": "'ner' not found; expected one of none, classification, qa, lm",
        "parameters.bert-base.qa.half.total": f"method: 'half' not found; expected one of {methods}",
        "parameters.bert-base.qa.full.all": "'all' not found; expected one of total, trainable, frozen, added",
        "formula.total": "expected formula.<model>.<total or term>",
        "memory.lora.constant": "'lora' not found; expected one of full, adapter",
    }.items():
        with pytest.raises(LookupError, match=f"^{re.escape(message)}"):
            find_figure(address, replace(REPORTS, params={"methods": {"mine": {"method": "lora"}}}))


def test_what_the_studies_counted() -> None:
    counts = {
        "parameters.bert-base.classification.full.head_weights": 1_536,
        "parameters.llama-3.2-1b.classification.frozen.trainable": 4_096,
        "parameters.llama-3.2-1b.classification.frozen.frozen": 1_235_814_400,
        "parameters.llama-3.2-1b.classification.frozen.head_biases": 0,
        "parameters.llama-3.2-1b.qa.frozen.head_biases": 2,
        "formula.roberta-small.total": 22_829_056,
    }
    assert {address: counted(address, {}) for address in counts} == counts
    example = {"full.constant": 4.8e4, "full.per_token_pair": 1.84e-2, "full.per_token": 8.11,
               "adapter.constant": 1.3e4, "adapter.per_token": 1.11}  # fmt: skip
    found = {name: counted(f"memory.{name}", {}) for name in example}
    assert found == pytest.approx(example, rel=0.005), "as far as they were printed"
    with pytest.raises(LookupError, match=r"^'score' not found; expected one of parameters, formula, memory$"):
        counted("score.sst2.full.accuracy", {})


def test_a_method_is_set_as_the_study_sets_it() -> None:
    wide = {"methods": {"wide": {"method": "lora", "rank": 32}, "lora": {"rank": 16}}}
    added = 4 * 4 * (512 + 512)  # four matrices of four layers, for each rank
    for method, rank in {"wide": 32, "lora": 16, "full": 0}.items():  # full: params.yaml need not name it
        assert counted(f"parameters.roberta-small.classification.{method}.added", wide) == rank * added


def _study(scale: str, published: Any, address: str | None = "score.sst2.full.accuracy") -> PublishedStudy:
    table = PublishedTable("t", "Table", scale, ("c",), {"r": Row((address,), (published,))})
    return PublishedStudy("T", "S", (table,))


def _cell(scale: str, published: Any, address: str | None = "score.sst2.full.accuracy") -> ComparedCell:
    (compared,) = compare_tables(_study(scale, published, address), REPORTS).values()
    return compared.rows["r"]["c"]


def test_verdicts() -> None:
    for scale, address, verdicts in (
        ("fraction", "score.sst2.full.accuracy",
         {"0.8": "exact", "0.87": "outside, one seed", None: "no figure published", "0.75-0.85": "in the range",
          "0.83-0.85": "within", "0.62-0.65": "outside, one seed"}),
        ("percent", "score.sst2.full.accuracy", {"80.0": "exact", "75.0": "within", "74.99": "outside, one seed"}),
        ("fraction", "score.sst2.two.accuracy",  # 0.804 is not 0.8000; 0.9 may be 0.86
         {"0.80": "exact", "0.8000": "within", "0.9": "within", "0.7": "within", "0.90": "beyond",
          "0.62-0.65": "beyond", "0": "beyond", "1": "beyond"}),  # written without digits, both are meant exactly
        ("percent", "score.sst2.two.accuracy",  # the ends belong to the interval
         {"76.1 ± 2.0": "within", "75.0": "within", "74.99": "beyond"}),
        ("perplexity", "perplexity.valid.masked.perplexity_per_token", {"12": "outside, one seed"}),
        ("fraction", "baseline.sst2.majority.accuracy", {"0.7": "beyond"}),  # baselines have no seed
        ("perplexity", "perplexity.valid.unigram.perplexity_per_token", {"165": "within", "171": "beyond"}),
        ("percentage", "score.sst2.full.exact_match", {"61.0": "no interval"}),
        ("fraction", "score.sst2.full.exact_match", {"0.6": "exact"}),
        ("fraction", "score.sst2.scratch.accuracy", {"0.5": "not measured"}),
        ("fraction", None, {"0.5": "not measured"}),
        ("count", "formula.roberta-small.total", {"22,829,056": "exact", "22,829,057": "beyond"}),
        ("count", "run.pretrain.updates", {"686": "exact"}),
        ("seconds", "run.pretrain.seconds", {"46": "of this machine"}),
    ):  # fmt: skip
        found = {published: _cell(scale, published, address).verdict for published in verdicts}
        assert found == verdicts, address


def test_a_cell_is_on_the_tables_scale() -> None:
    assert _cell("percent", "76.12 ± 2.0").to_json() == {
        "verdict": "within", "scale": "percent", "printed": "76.12 ± 2.0", "shown": "80.00 (75.00 – 86.00)",
        "published": 76.12, "reproduced": 80.0, "published_std": 2.0, "interval": {"low": 75.0, "high": 86.0},
    }  # fmt: skip
    several = _cell("percent", "80.4", "score.sst2.two.accuracy")
    assert (several.shown, several.std) == ("80.4 ± 1.0 (75.0 – 86.0)", 1.0)
    where = r"^published\.yaml: tables: t: r: c: score\.sst2\.full\."
    with pytest.raises(InputError, match=f"{where}accuracy: scale: 'score' is not allowed; it is on the scale fract"):
        _cell("score", "0.8")
    with pytest.raises(InputError, match=f"{where}f1: 'f1' not found; expected one of accuracy, exact_match$"):
        _cell("fraction", "0.5", "score.sst2.full.f1")


def test_as_many_digits_are_shown_as_were_printed() -> None:
    assert _cell("mebibytes", "1.84e-2", "memory.full.per_token_pair").shown == "1.84e-02"
    assert _cell("count", "22M", "formula.roberta-small.total").shown == "22,829,056"
    assert _cell("percentage", "0", "score.sst2.full.exact_match").shown == "60.00", "none at all is no rounded 0.4"
    assert _cell("fraction", "0.8").shown == "0.8 (0.8 – 0.9)"
    assert _cell("fraction", "0.80000").shown == "0.80000 (0.75000 – 0.86000)"
    of_thirteen = _cell("fraction", "0.0009801603959", "before.sst2.two.accuracy").shown
    assert of_thirteen == "0.5000000000000 ± 0.3535533905933 (0.0000000000000 – 1.0000000000000)"
    assert {_cell("fraction", said).shown for said in ("1", "1.0", None)} == {"0.8000 (0.7500 – 0.8600)"}
    within = _cell("fraction", "0.80-0.70")
    assert (within.printed, within.shown) == ("0.80-0.70", "0.80 (0.75 – 0.86)")
    assert (within.published, within.published_end) == (0.8, 0.7)


def test_times_are_on_the_page_alone(tmp_path: Path) -> None:
    tables = compare_tables(_study("seconds", "46", "run.pretrain.seconds"), REPORTS)
    assert tables["t"].rows["r"]["c"].reproduced == 46.3
    write_json(tmp_path / "study.json", StudyResult(title="T", source="S", small=True, tables=tables).to_json())
    of_machine = cell_of("of this machine", "seconds", "46", published=46.0)
    assert list(StudyResult.read(tmp_path / "study.json").cells()) == [("t", "r", "c", of_machine)]


def _evidence(**figures: str) -> list[dict[str, str]]:
    doubt = Doubt("t", "says", "finding", figures)
    return evidence(replace(_study("fraction", "0.8"), doubts=(doubt,)), REPORTS)


def test_evidence_has_its_own_scale_and_its_place() -> None:
    here, absent = "score.sst2.full.exact_match", "score.sst2.scratch.exact_match"
    assert _evidence(here=here, absent=absent) == [{"here": "60.00", "absent": ""}]
    example = {of: f"memory.adapter.{of}" for of in ("constant", "per_token")}
    assert _evidence(**example) == [{"constant": "12,952", "per_token": "1.1059"}], "no rounded 1 MB per token"
    message = r": doubts\[0\]: x: score\.sst2: the address is incomplete; continue with one of full, lora, two$"
    with pytest.raises(InputError, match=message):
        _evidence(x="score.sst2")


def _best(table: dict[str, Any], reports: Reports = REPORTS) -> dict[str, set[tuple[str, str]]]:
    made = PublishedTable("t", "Table", **table)
    return compare_tables(PublishedStudy("T", "S", (made,)), reports)["t"].best


GRID: dict[str, Any] = {
    "scale": "percentage", "columns": {"accuracy": "accuracy", "exact": "exact_match"}, "best": "column",
    "rows": {"Full": Row("score.sst2.full.{column}", ("80.0", "50.0")),
             "LoRA": Row("score.sst2.lora.{column}", ("90.0", "50.0"))},
}  # fmt: skip


def test_the_best_of_each_column() -> None:
    assert _best({**GRID, "best": None}) == {}
    assert _best(GRID) == {
        "published": {("LoRA", "accuracy"), ("Full", "exact"), ("LoRA", "exact")},
        "reproduced": {("Full", "accuracy"), ("LoRA", "exact")},
    }
    losses = {"scale": "loss", "columns": ("c",), "best": "column"}
    one, another = Row((None,), ("0.9",)), Row((None,), ("0.5",))
    assert _best({**losses, "rows": {"r": one, "s": another}})["published"] == {("s", "c")}, "the lowest"
    assert _best({**losses, "rows": {"r": one}})["published"] == set()


@pytest.mark.parametrize(("better", "best"), [("higher", {"Full"}), ("lower", {"LoRA"}), ("neither", set())])
def test_the_best_is_the_one_that_the_score_calls_so(better: Better, best: set[str]) -> None:
    legend = {"accuracy": Figure("fraction", better), "exact_match": Figure("percentage", "neither")}
    task = DETAILS.tasks["sst2"].model_copy(update={"legend": legend})
    reports = replace(REPORTS, details=Details(tasks={"sst2": task}), curves={})
    assert _best(GRID, reports)["reproduced"] == {(row, "accuracy") for row in best}


def _noticed(scale: str, figures: dict[str, str], kind: str = "score") -> list[str]:
    cells = [
        PublishedCell("r", name, f"{kind}.squad.full.{name}", printed(value), scale) for name, value in figures.items()
    ]
    return notices({"t": cells})


def test_figures_that_cannot_be_right_are_noticed() -> None:
    for scale, figures, said in (
        ("fraction", {"accuracy": "0.5092", "precision": "0.5092", "recall": "1.0", "f1": "0.6748"},
         "recall without accuracy: recall 1 but accuracy 0.5092, as if everything were put in one class"),
        ("percent", {"accuracy": "55.1", "precision": "55.1", "recall": "100.0"},
         "recall without accuracy: recall 1 but accuracy 0.551, as if everything were put in one class"),
        ("percentage", {"exact_match": "0.13263", "f1": "0.001326"},
         "f1 below exact match: F1 0.001326 is lower than the exact match, 0.1326, which cannot be"),
        ("fraction", {"exact_match": "0.072", "f1": "0.02748"},
         "f1 below exact match: F1 2.748 is lower than the exact match, 7.2, which cannot be"),
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
    ):  # fmt: skip
        assert _noticed(scale, figures) == ([f"t: squad full: {said}"] if said else [])


def test_only_figures_of_one_model_are_set_side_by_side() -> None:
    addresses = {"before.squad.full.exact_match": "60.0", "score.squad.full.f1": "30.0", None: "1.0",
                 "score.squad.lora.exact_match": "50.0", "epoch.squad.full.1.exact_match": "70.0",
                 "baseline.squad.no_answer.exact_match": "90.0"}  # fmt: skip
    cells = [PublishedCell("r", "c", address, printed(value), "percentage") for address, value in addresses.items()]
    assert notices({"t": cells}) == []
    (line,) = _noticed("percentage", {"exact_match": "60.0", "f1": "30.0"}, "before")
    assert line.startswith("t: before training squad full: f1 below exact match: ")
