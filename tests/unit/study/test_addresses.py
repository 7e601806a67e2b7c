"""Figures by address: from reports written by hand, and counted, against totals that studies printed."""

import math
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from retrace.perplexity.measures import PerplexityReport
from retrace.study.comparison import Reports, Reproduced, counted, find_figure
from tests.study import RUN, details_of

ENDS = {"low": 0.75, "high": 0.85}
FULL = {
    "seeds": {"1": {"accuracy": 0.7, "validation_loss": 0.3, "meteor_x": 0.1},
              "2": {"accuracy": 0.9, "validation_loss": 0.5, "meteor_x": 0.1}},
    "mean": {"accuracy": 0.8, "validation_loss": 0.4, "meteor_x": 0.1}, "std": {"accuracy": 0.1},
    "before": {"1": {"accuracy": 0.25}, "2": {"accuracy": 0.75}},
    "intervals": {"accuracy": {"low": 0.6, "high": 0.95, "low_examples": 0.75, "high_examples": 0.85}},
}  # fmt: skip
SCALES = {"accuracy": "fraction", "meteor_x": "fraction", "exact_match": "percentage"}
AROUND = {"low": 0.4, "high": 0.6}
BASELINE = ({"accuracy": 0.5}, AROUND)
CURVE = pd.DataFrame(
    [("full", "1", 0, math.nan, 0.7, 0.2), ("full", "1", 1, 0.5, 0.7, 0.7), ("full", "2", 0, math.nan, 0.7, 0.4),
     ("full", "2", 1, 0.6, 0.7, 0.9)],
    columns=["method", "seed", "epoch", "training_loss", "validation_loss", "accuracy"],
)  # fmt: skip
PRETRAINING = pd.DataFrame(
    [(0, math.nan, 6.0, 403.4, 3), (1, 5.0, 4.0, 54.6, 9)],
    columns=["epoch", "training_loss", "validation_loss", "perplexity", "seconds"],
)
MASKED = {"perplexity_per_token": 9.0, "perplexity_per_word": 20.0, "bits_per_byte": 1.0}
UNIGRAM = {"perplexity_per_token": 160.0, "perplexity_per_word": 210.0, "bits_per_byte": 1.6}
RUNS = {"pretrain": RUN, "sst2 full 1": RUN.model_copy(update={"seconds": 17.4, "updates": 471})}
NAMED = {"sst2", "squad", "full", "lora", "pretrain"}


def _perplexity(**measures: Any) -> PerplexityReport:
    return PerplexityReport.from_json({"valid": {**measures, "beats_unigram": True, "flags": {}}})


REPORTS = Reports(
    details_of(SCALES, {"full": FULL}, *BASELINE), {"sst2": CURVE}, PRETRAINING,
    _perplexity(masked={**MASKED, "intervals": {"perplexity_per_token": ENDS}}, unigram=UNIGRAM), RUNS, NAMED, {},
)  # fmt: skip


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("score.sst2.full.accuracy", Reproduced(0.8, "fraction", 0.1, {"low": 0.6, "high": 0.95}, better="higher")),
        ("score.sst2.full.meteor*", Reproduced(0.1, "fraction", 0.0, {"low": 0.1, "high": 0.1}, better="higher")),
        ("baseline.sst2.majority.accuracy", Reproduced(0.5, "fraction", interval=AROUND, better="higher")),
        ("pretraining.1.perplexity", Reproduced(54.6, "perplexity", better="lower")),
        ("pretraining.0.validation_loss", Reproduced(6.0, "loss", better="lower")),
        ("perplexity.valid.masked.perplexity_per_token", Reproduced(9.0, "perplexity", interval=ENDS, better="lower")),
        ("perplexity.valid.unigram.bits_per_byte", Reproduced(1.6, "score", better="lower")),
        ("run.pretrain.seconds", Reproduced(46.3, "seconds", is_timed=True)),
        ("run.pretrain.peak_memory_mib", Reproduced(673.0, "mebibytes", is_timed=True)),
        ("run.sst2.full.1.updates", Reproduced(471.0, "count", is_exact=True)),
        ("run.sst2.full.1.tokens", Reproduced(9000.0, "count", is_exact=True)),
        ("parameters.llama-3.2-1b.none.full.total", Reproduced(1_235_814_400, "count", is_exact=True)),
        # In params.yaml, but not run.
        ("score.squad.full.f1", None),
        ("score.sst2.lora.accuracy", None),
        ("epoch.squad.full.1.f1", None),
        ("baseline.squad.no_answer.f1", None),
        ("epoch.sst2.full.2.accuracy", None),
        ("pretraining.9.perplexity", None),
        ("run.squad.lora.1.seconds", None),
    ],
)
def test_figures(address: str, expected: Reproduced | None) -> None:
    assert find_figure(address, REPORTS) == expected


@pytest.mark.parametrize(
    ("address", "value", "std"),
    [("before.sst2.full.accuracy", 0.5, 0.5**0.5 / 2), ("epoch.sst2.full.1.accuracy", 0.8, 0.02**0.5),
     ("epoch.sst2.full.1.training_loss", 0.55, 0.005**0.5), ("score.sst2.full.validation_loss", 0.4, 0.02**0.5)],
)  # fmt: skip
def test_means_over_seeds_have_students_interval(address: str, value: float, std: float) -> None:
    found = find_figure(address, REPORTS)
    assert found is not None
    assert found.value == pytest.approx(value)
    assert found.std == pytest.approx(std)
    reach = 12.706204736 * std / 2**0.5  # of two seeds
    low, high = (0.0, 1.0) if found.scale == "fraction" else (-math.inf, math.inf)
    assert found.interval == pytest.approx({"low": max(low, value - reach), "high": min(high, value + reach)})


def test_a_seed_alone_has_no_interval() -> None:
    found = find_figure("epoch.sst2.full.1.accuracy", replace(REPORTS, curves={"sst2": CURVE[:2]}))
    assert found == Reproduced(0.7, "fraction", better="higher")


def test_what_one_seed_lacks_has_no_mean() -> None:
    curve = CURVE.assign(accuracy=[0.2, 0.7, 0.4, math.nan])
    assert find_figure("epoch.sst2.full.1.accuracy", replace(REPORTS, curves={"sst2": curve})) is None


def test_without_pretraining_nothing_of_it_is_there() -> None:
    absent = {**MASKED, "perplexity_per_word": None}
    reports = replace(REPORTS, perplexity=_perplexity(masked=absent))
    assert find_figure("perplexity.valid.masked.perplexity_per_word", reports) is None
    reports = replace(REPORTS, pretraining=None, perplexity=None)
    assert find_figure("pretraining.1.perplexity", reports) is None
    assert find_figure("perplexity.valid.masked.perplexity_per_token", reports) is None


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("scores.sst2.full.f1", "'scores' is not there; there is: score, before, epoch, baseline, pretraining, "),
        ("score.sst2.full", "it has to go on, with one of accuracy, validation_loss, meteor_x"),
        ("score.sst3.full.accuracy", "'sst3' is not there; there is: sst2"),
        ("score.sst2.entire.accuracy", "'entire' is not there; there is: full"),
        ("score.sst2.full.f1", "'f1' is not there; there is: accuracy, validation_loss, meteor_x"),
        ("score.sst2.full.rouge*", "'rouge*' is not there; there is: accuracy"),
        ("epoch.sst2.full.first.accuracy", "'first' is not there; there is: 0, 1"),
        ("epoch.sst2.full.0.training_loss", "'training_loss' is not there; there is: validation_loss, accuracy"),
        ("epoch.sst2.full.1.seed", "'seed' is not there; there is: training_loss, validation_loss, accuracy"),
        ("pretraining.1.seconds", "'seconds' is not there; there is: training_loss, validation_loss, perplexity"),
        ("perplexity.valid.flags.perplexity_per_token", "'flags' is not there; there is: masked, unigram"),
        ("perplexity.test.masked.perplexity_per_token", "'test' is not there; there is: valid"),
        ("run.pretrain.device", "'device' is not there; there is: updates, seconds, tokens_per_second, "),
        ("score.sst2.full.all.accuracy", "'all' is not there; there is: accuracy, validation_loss, meteor_x"),
        ("parameters.bert-base.total", "expected parameters.<model>.<head>.<method>.<figure>"),
        ("parameters.bert.none.full.total", "model: 'bert' is not there; there is: bert-base, llama-3.2-1b, "),
        ("parameters.bert-base.ner.full.total", "'ner' is not there; there is: none, classification, qa, lm"),
        ("parameters.bert-base.qa.half.total", "method: 'half' is not there; there is: adapter, frozen, full, lora, "),
        ("parameters.bert-base.qa.full.all", "'all' is not there; there is: total, trainable, frozen, added"),
        ("formula.bert-base.terms", "'terms' is not there; there is: total"),
        ("formula.total", "expected formula.<model>.<total or term>"),
        ("memory.lora.constant", "'lora' is not there; there is: full, adapter"),
        ("memory.full.all", "'all' is not there; there is: constant, per_token, per_token_pair"),
    ],
)
def test_what_leads_nowhere_says_what_there_is(address: str, message: str) -> None:
    with pytest.raises(LookupError) as caught:
        find_figure(address, replace(REPORTS, params={"methods": {"mine": {"method": "lora"}}}))
    assert caught.value.args[0].startswith(message)


def test_what_is_measured_is_not_counted() -> None:
    with pytest.raises(LookupError, match=r"^'score' is not there; there is: parameters, formula, memory$"):
        counted("score.sst2.full.accuracy", {})


@pytest.mark.parametrize(
    ("address", "printed"),
    [
        ("parameters.bert-base.none.full.total", "109,482,240"),
        ("parameters.bert-base.classification.full.head_weights", "1,536"),
        ("parameters.llama-3.2-1b.classification.frozen.trainable", "4,096"),
        ("parameters.llama-3.2-1b.classification.frozen.frozen", "1,235,814,400"),
        ("parameters.llama-3.2-1b.classification.frozen.head_biases", "0"),
        ("parameters.llama-3.2-1b.qa.frozen.head_biases", "2"),
        ("formula.roberta-small.total", "22,829,056"),
        ("memory.full.constant", "4.8e+04"),
        ("memory.full.per_token_pair", "1.84e-02"),
        ("memory.full.per_token", "8.11e+00"),
        ("memory.adapter.constant", "1.3e+04"),
        ("memory.adapter.per_token", "1.11e+00"),
    ],
)
def test_what_the_studies_counted(address: str, printed: str) -> None:
    mantissa = printed.partition("e")[0].partition(".")[2]
    assert f"{counted(address, {}):{f'.{len(mantissa)}e' if 'e' in printed else ','}}" == printed


def test_a_method_is_set_as_the_study_sets_it() -> None:
    wide = {"methods": {"wide": {"method": "lora", "rank": 32}, "lora": {"rank": 16}}}
    address = "parameters.roberta-small.classification.{}.added"
    added = 4 * 4 * (512 + 512)  # four matrices of four layers, for each rank
    assert counted(address.format("wide"), wide) == 32 * added
    assert counted(address.format("lora"), wide) == 16 * added
    assert counted(address.format("full"), wide) == 0, "which params.yaml need not name"
