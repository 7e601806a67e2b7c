"""Sections about parameters and memory, from entries as published.yaml has them."""

import re
from typing import Any

import pytest

from retrace.core.errors import InputError
from retrace.core.settings import build_file
from retrace.estimates.architectures import find_model
from retrace.report.blocks import Fold, Section, Table
from retrace.report.page import as_html
from retrace.study.published import PublishedStudy
from retrace.study.sections import estimate, estimates_table, size_sections
from tests.toy import ROOT


def _section(**entry: Any) -> Section:
    (section,) = size_sections([entry], {"methods": {"thin": {"method": "lora", "rank": 1}}})
    return section


def _tables(section: Section) -> list[Table]:
    """Those that are folded away among them."""
    blocks = [inner for block in section.blocks for inner in (block.blocks if isinstance(block, Fold) else [block])]
    return [block for block in blocks if isinstance(block, Table)]


def test_a_summary_is_torchinfos() -> None:
    section = _section(kind="summary", model="bert-base", head="classification")
    assert "ModuleList: 3-6                             85,054,464" in str(section.blocks[0])
    assert "Total params: 109,483,778" in str(section.blocks[0])
    assert ("head biases", "2") in _tables(section)[0].rows
    shared = _section(kind="summary", model="llama-3.2-1b", head="lm").blocks
    assert "1,498,482,688. The model has 1,235,814,400." in str(shared[1]), "which torchinfo counts twice"


def test_a_part_is_summed_alone() -> None:
    for kind in ("summary", "modules"):
        section = _section(kind=kind, model="bert-base", part="encoder.layer.0")
        assert "bert-base: encoder.layer.0" in section.title
        sums, *rest = _tables(section)
        assert ("total", "7,087,872") in sums.rows
    assert ("encoder.layer.0.intermediate.dense", "2,362,368") in rest[0].rows
    assert len(rest[0].rows) == 8


def test_every_parameter_has_a_row_and_many_are_folded_away() -> None:
    section = _section(kind="parameters", model="bert-base", head="qa")
    sums, rows = _tables(section)
    assert ("total", "108,893,186") in sums.rows
    assert len(rows.rows) == 5 + 12 * 16 + 2 == 199
    assert [block.gist for block in section.blocks if isinstance(block, Fold)] == ["199 rows"]
    assert rows.rows[0] == ("bert.embeddings.word_embeddings.weight", "23,440,896")
    assert sum(int(str(row[1]).replace(",", "")) for row in rows.rows) == 108_893_186


def test_what_is_trained_is_shown_where_it_is_not_all() -> None:
    _, rows = _tables(_section(kind="modules", model="roberta-small", head="qa", method="thin"))
    assert rows.header == ("Modules", "Parameters", "Trained")
    assert ("roberta.encoder.layer.3.attention.self.query.lora_A.default", "512", "512") in rows.rows
    assert ("qa_outputs", "1,026", "1,026") in rows.rows


def test_equations_stand_beside_what_they_give() -> None:
    one, both = (["formula.roberta-small.feed-forward", "formula.roberta-small.attention"][:count] for count in (1, 2))
    equations = [
        {"number": "(2)", "equation": "FFN(x) = …", "gives": "2,101,248", "figures": one},
        {"number": "(3)", "equation": "a < b", "gives": "7", "figures": both},
        {"number": "(4)", "equation": "c", "gives": "8"},
    ]
    section = _section(kind="equations", title="Equations", symbols="d: size.", equations=equations)
    assert section.blocks[0] == "d: size."
    assert _tables(section)[0].rows == [
        ("(2)", "FFN(x) = …", "2,101,248", "2,101,248"), ("(3)", "a < b", "7", "6,303,744"), ("(4)", "c", "8", "–"),
    ]  # fmt: skip
    assert "<td>a &lt; b</td>" in as_html("T", [section])


def test_a_formula_comes_to_the_model_by_its_differences() -> None:
    section = _section(kind="formula", model="roberta-small")
    (table,) = _tables(section)
    assert section.blocks[0] == "V tokens, P positions, L layers of size h and inner size f."
    assert table.rows[-3:] == [
        ("by the formula", "", "22,829,056"),
        ("beyond the formula: embeddings.token_type_embeddings", "", "+512"),
        ("the model", "", "22,829,568"),
    ]
    assert table.is_numeric(2)


def test_published_counts_come_to_the_model_by_their_differences() -> None:
    tables = _tables(_section(kind="differences", model="bert-base"))
    assert [table.rows[0][1] for table in tables] == ["110,000,000", "108,432,384"]
    for table in tables:
        counts = [int(str(count).replace(",", "")) for _, count in table.rows]
        assert sum(counts[:-1]) == counts[-1] == 109_482_240


def test_what_plm_peft_says_of_an_update_is_what_is_estimated() -> None:
    """In megabytes, as the report's formulas are meant; the section about memory has MiB."""
    study = build_file(PublishedStudy, ROOT / "studies/plm-peft/published.yaml")
    findings = " ".join(doubt.finding for doubt in study.doubts)
    figures = r"(\S+) MB{} and (\S+) MB{}, a saving of (\S+)%\."
    said = [
        *re.findall("update, is " + figures.format(" for tuning every weight", " with adapters"), findings),
        *re.findall("The report's formulas give " + figures.format("", ""), findings),
    ]
    config = find_model("roberta-base").config
    full, adapter = estimate("RoBERTa", config, 32, 128, ("full", "adapter"), {}).to_dict("records")
    assert said == [
        (f"{full[size] / 10**6:,.0f}", f"{adapter[size] / 10**6:,.0f}", f"{100 * adapter[saved]:.0f}")
        for size, saved in (("estimate", "saved"), ("by the formula", "saved by the formula"))
    ]


def test_memory_has_estimates() -> None:
    entry = {"model": "roberta-small", "batch": 2, "lengths": [16], "methods": ["full", "thin"], "example": False}
    (estimates,) = _tables(_section(kind="memory", **entry))
    assert [row[:3] for row in estimates.rows] == [("roberta-small", "2 × 16", name) for name in ("full", "thin")]


def test_what_is_saved_is_of_what_the_first_method_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ("RoBERTa", find_model("roberta-small").config, 2, 16, ("full", "adapter", "lora"), {})
    found = estimate(*asked)
    monkeypatch.setenv("RETRACE_MICRO_BATCH", "1")
    monkeypatch.setenv("RETRACE_ACTIVATION_CHECKPOINTING", "true")
    assert estimate(*asked).equals(found), "the whole batch, as published, however this machine trains"
    full, adapter, lora = found.to_dict("records")
    assert adapter["saved"] == 1 - adapter["estimate"] / full["estimate"]
    assert adapter["saved by the formula"] == 1 - adapter["by the formula"] / full["by the formula"]
    assert full["moments"] == pytest.approx(2 * full["gradients"], rel=1e-4)
    assert adapter["gradients"] == 4 * adapter["trained"]
    first, _, last = estimates_table(found).rows
    assert [first[column] for column in (10, 12)] == ["–", "–"]
    assert last[9:] == (f"{lora['estimate'] / 2**20:,.0f}", f"{100 * lora['saved']:.1f}", "–", "–")


EQUATION = {"number": "(1)", "equation": "e", "gives": "g", "figures": ["formula.scibert.sum"]}


def test_a_wrong_entry_is_one_line() -> None:
    for entry, said in (
        ({}, ".kind: None is not allowed; expected one of summary, parameters, modules, formula, "),
        ({"kind": "count"}, ".kind: 'count' is not allowed; expected one of summary, "),
        ({"kind": "formula", "model": "bert"}, ": model: 'bert' not found; expected one of bert-base, "),
        ({"kind": "differences"}, ": retrace/estimates/architectures.json has no published count of scibert"),
        ({"kind": "modules", "method": "half"}, ": method: 'half' not found; expected one of adapter, "),
        ({"kind": "equations", "title": "t", "symbols": "s", "equations": [EQUATION]},
         ": 'sum' not found; expected one of total, word embeddings, "),
        ({"kind": "modules", "part": "layer"}, ": part: 'layer' is not a module of scibert"),
        ({"kind": "parameters", "published": {"pool": 1}}, ": published: scibert has no pool"),
        ({"kind": "memory", "lengths": [600]}, ".lengths: 600 is not allowed; expected 1 to 512 tokens"),
        ({"kind": "memory", "methods": ["full"]}, ".methods: ['full'] is not allowed; expected a list of 2 or more "),
        ({"kind": "memory", "methods": ["half", "full"]}, ": method: 'half' not found; expected one of "),
    ):  # fmt: skip
        model = {} if entry.get("kind") in (None, "equations", "memory") else {"model": "scibert"}
        with pytest.raises(InputError, match=rf"^published\.yaml: sections\[0\]{re.escape(said)}[^\n]*$"):
            size_sections([model | entry], {})


def test_what_was_printed_stands_beside_what_there_is() -> None:
    printed = {"embeddings.word_embeddings": 23_440_896, "pooler": 590_000}
    _, table = _tables(_section(kind="summary", model="bert-base", published=printed))
    assert table.rows == [
        ("embeddings.word_embeddings", "23,440,896", "23,440,896", "exact"),
        ("pooler", "590,000", "590,592", "+592"),
    ]
