"""Figures by address: against totals that studies printed, and what is said of an address that leads nowhere."""

from pathlib import Path

import pytest

from retrace.study.sizes import counted


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("parameters.bert-base.none.full.total", 109_482_240),
        ("parameters.bert-base.classification.full.total", 109_483_778),
        ("parameters.bert-base.qa.full.total", 108_893_186),
        ("parameters.bert-base.classification.full.head_weights", 1_536),
        ("parameters.llama-3.2-1b.none.full.total", 1_235_814_400),
        ("parameters.llama-3.2-1b.classification.frozen.total", 1_235_818_496),
        ("parameters.llama-3.2-1b.classification.frozen.trainable", 4_096),
        ("parameters.llama-3.2-1b.classification.frozen.frozen", 1_235_814_400),
        ("parameters.llama-3.2-1b.classification.frozen.head_biases", 0),
        ("parameters.llama-3.2-1b.qa.frozen.total", 1_235_818_498),
        ("parameters.llama-3.2-1b.qa.frozen.trainable", 4_098),
        ("parameters.llama-3.2-1b.qa.frozen.head_biases", 2),
        ("parameters.roberta-small.none.full.total", 22_829_568),
        ("formula.roberta-small.total", 22_829_056),
        ("formula.llama-3.2-1b.total", 1_235_814_400),
    ],
)
def test_what_the_studies_counted(address: str, expected: int) -> None:
    assert counted(address.split("."), {}) == expected


def test_a_method_is_set_as_the_study_sets_it() -> None:
    wide = {"methods": {"wide": {"tuning": "lora", "rank": 32}, "lora": {"rank": 16}}}
    address = "parameters.roberta-small.classification.{}.added"
    added = 4 * 4 * (512 + 512)  # four matrices of four layers, for each rank
    assert counted(address.format("wide").split("."), wide) == 32 * added
    assert counted(address.format("lora").split("."), wide) == 16 * added
    assert counted(address.format("full").split("."), wide) == 0, "which params.yaml need not name"


def test_params_yaml_is_read_where_no_params_are_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    address = "parameters.roberta-small.none.lora.added".split(".")
    by_default = counted(address)
    (tmp_path / "params.yaml").write_text("methods: {lora: {rank: 1}}")
    assert counted(address) == by_default / 16


@pytest.mark.parametrize(
    ("address", "printed"),
    [
        ("memory.full.constant", "4.8e+04"),
        ("memory.full.per_token_pair", "1.84e-02"),
        ("memory.full.per_token", "8.11e+00"),
        ("memory.adapter.constant", "1.3e+04"),
        ("memory.adapter.per_token", "1.11e+00"),
    ],
)
def test_the_studys_memory_to_the_printed_digits(address: str, printed: str) -> None:
    digits = len(printed.partition("e")[0].partition(".")[2])
    assert f"{counted(address.split('.'), {}):.{digits}e}" == printed


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("", "'' is no figure; there is: parameters, formula, memory"),
        ("parameters.bert-base.total", "expected parameters.<model>.<head>.<method>.<figure>"),
        ("parameters.bert.none.full.total", "'bert' is no model; there is: bert-base, llama-3.2-1b, roberta-base"),
        ("parameters.bert-base.ner.full.total", "'ner' is no head; there is: none, classification, qa, lm"),
        ("parameters.bert-base.qa.half.total", "'half' is no method; there is: adapter, frozen, full, lora, mine"),
        ("parameters.bert-base.qa.full.all", "'all' is no figure; there is: total, trainable, frozen, added"),
        ("formula.bert-base.terms", "'terms' is no figure; there is: total"),
        ("formula.total", "expected formula.<model>.<total or term>"),
        ("memory.lora.constant", "'lora' is no method; there is: full, adapter"),
        ("memory.full.all", "'all' is no figure; there is: constant, per_token, per_token_pair"),
        ("memory.full", "expected memory.<method>.<figure>"),
    ],
)
def test_an_address_that_leads_nowhere_says_what_there_is(address: str, said: str) -> None:
    with pytest.raises(LookupError) as error:
        counted(address.split("."), {"methods": {"mine": {"tuning": "lora"}}})
    assert said in str(error.value)
