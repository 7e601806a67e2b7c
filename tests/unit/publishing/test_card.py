"""The card says what it was given, escaped, and nothing beside it."""

from dataclasses import replace
from typing import Any

import pytest
import yaml

from retrace.evaluation.records import BaselineDetails, SeedDetails
from retrace.hub.pins import Pin
from retrace.perplexity.measures import PerplexityReport
from retrace.publishing.card import WORKS, ModelFacts, Origin, RunResults, Scores, eval_results, hub_origin, model_card
from retrace.report.blocks import Cell, Table
from retrace.statistics.scales import CURVES, Figure

COMMIT = "a" * 40
SCORES = Scores(
    trial=SeedDetails(
        epoch=2, figures={"validation_loss": 0.5, "accuracy": 0.875, "matthews": 0.75},
        intervals={"accuracy": {"low": 0.8, "high": 0.95}}, before={"accuracy": 0.5},
    ),
    baselines={
        "majority": BaselineDetails(figures={"accuracy": 0.25}, intervals={"accuracy": {"low": 0.125, "high": 0.375}})
    },
    legend={"accuracy": Figure("fraction", "higher"), "matthews": Figure("correlation", "higher"),
            "validation_loss": CURVES["validation_loss"]},
    headlines=["accuracy"],
    split="validation",
)  # fmt: skip
FACTS = ModelFacts(
    repository="org/name", summary="A model.", use="classifier", library="transformers",
    lines=("from transformers import AutoTokenizer", "tokenizer = 1", "model = 2"), base=None, started=None,
    tags=["retrace"],
    origins=[Origin("text", "a sample"), Origin("sst2", "a sample", licence="Apache-2.0")],
    counts=Table(("data", "count"), [("sst2", "1,200")]),
    training=Table(("setting", "value"), [("lr", "0.001")]), scores=SCORES, perplexity=None, flags=[],
    limits=["Small."], results=RunResults([], "", None),
)  # fmt: skip
UNITS = {"perplexity_per_token": 6.5, "perplexity_per_word": 7.0, "bits_per_byte": 0.5}
PERPLEXITY = PerplexityReport.from_json(
    {part: {"masked": UNITS, "unigram": UNITS, "beats_unigram": None, "flags": {}} for part in ("valid", "test")}
)


def _metadata(facts: ModelFacts) -> dict[str, Any]:
    return yaml.safe_load(str(model_card(facts)).split("---\n")[1])


def test_figures_have_their_scale_interval_and_baseline() -> None:
    text = model_card(FACTS).text
    assert "| score | unit | this model | before tuning | majority class |" in text
    assert "| accuracy | % | 87.5 (80.0 – 95.0) | 50.0 | 25.0 (12.5 – 37.5) |" in text
    assert "| matthews | −1 to 1 | 0.7500 | – | – |" in text
    assert "| validation loss | nats | 0.5000 | – | – |" in text
    for line in ("| lr | 0.001 |", "| sst2 | 1,200 |", "Small.", "Health: no flags.", "sst2: Apache-2.0."):
        assert line in text


def test_the_metadata_names_what_is_known() -> None:
    found = _metadata(FACTS)
    assert found.keys() == {"library_name", "pipeline_tag", "tags", "model-index"}
    (result,) = found["model-index"][0]["results"]
    assert result["metrics"] == [{"type": "accuracy", "value": 0.875, "name": "accuracy"}]
    assert "SST" not in str(result["dataset"])
    assert result["dataset"]["type"] == "not-on-the-hub"
    assert eval_results(FACTS) == []


def test_data_of_the_hub_is_named_with_its_commit_licence_and_authors() -> None:
    origins = [
        hub_origin("text", Pin("Salesforce/wikitext", COMMIT), "wikitext-2-raw-v1", "validation", None),
        hub_origin("squad", Pin("rajpurkar/squad_v2", COMMIT), "squad_v2", "validation[:50%]", "other"),
    ]
    facts = replace(FACTS, origins=origins, use="spans")
    text, found = model_card(facts).text, _metadata(facts)
    assert found["datasets"] == ["Salesforce/wikitext", "rajpurkar/squad_v2"]
    assert found["model-index"][0]["results"][0]["dataset"]["revision"] == COMMIT
    assert "CC BY-SA 3.0 and GFDL. Stephen Merity" in text
    assert "CC BY-SA 4.0. Pranav Rajpurkar" in text
    assert rf"SQuAD 2.0, rajpurkar/squad\_v2 at commit {COMMIT}, config squad\_v2" in text
    assert eval_results(facts) == [
        {
            "dataset": {"id": "rajpurkar/squad_v2", "task_id": "squad_v2", "revision": COMMIT},
            "value": 0.875,
            "notes": "accuracy, validation[:50%] split, 95% interval 0.8 to 0.95",
        }
    ]


def test_what_is_not_known_of_data_is_not_made_up() -> None:
    news = hub_origin("news", Pin("org/news", COMMIT), "default", "dev", None)
    text = model_card(replace(FACTS, origins=[Origin("text", "files of one's own"), news])).text
    assert text.count("the licence is not known to Retrace.") == 2
    assert "text: files of one's own." in text
    assert not any(str(work["citation"]) in text for work in WORKS.values())


def test_flags_stand_before_everything_else() -> None:
    text = model_card(replace(FACTS, flags=["one class only: all 20 examples are called good"])).text
    assert text.index("Warning: one class only: all 20 examples are called good.") < text.index("## How to load it")
    assert "Health" not in text


def test_the_verdict_and_the_table_of_the_run_are_those_of_the_report() -> None:
    said = [
        [("Pretraining is worth ", False), ("+1.0 points", True), (" on <b>a|b</b>_*.", False)],
        [("One seed.", False)],
    ]
    table = Table(("method", "score"), [("a_b|", Cell("90.0 ≈", bold=True))], groups=[("", 1), ("my_task: F1", 1)])
    text = model_card(replace(FACTS, results=RunResults(said, "Read [so](x).", table))).text
    shown = text[text.index("## What the run shows") : text.index("## How to load it")]
    assert shown.split("\n\n")[1:3] == [
        r"Pretraining is worth **+1.0 points** on \<b\>a\|b\</b\>\_\*.", "One seed."
    ]  # fmt: skip
    assert r"Read \[so\](x)." in shown
    assert r"| method | my\_task: F1, score |" in shown
    assert r"| a\_b\| | **90.0 ≈** |" in shown
    assert "What the run shows" not in model_card(FACTS).text


def test_text_from_data_is_escaped_and_stays_within_its_fence() -> None:
    evil = "<script>|[x](y)\n## Scores"
    lines = ("from a import b", "x = '```\\n# out'", "model = 1")
    text = model_card(replace(FACTS, flags=[evil], counts=Table((evil,), [(evil,)]), lines=lines)).text
    assert "<script>" not in text
    assert text.count("\n## Scores\n") == 1
    assert "````python\nfrom a import b\nx = '```\\n# out'\nmodel = 1\n````" in text


def test_what_training_started_from_is_named() -> None:
    facts = replace(FACTS, started=f"org/other@{COMMIT}, whose licence is mit", base="org/other")
    assert f"Training started from org/other@{COMMIT}, whose licence is mit." in model_card(facts).text
    assert _metadata(facts)["base_model"] == "org/other"
    assert "Training started" not in model_card(FACTS).text


@pytest.mark.parametrize("use", ["masked", "causal"])
def test_a_language_model_has_its_perplexity(use: str) -> None:
    facts = replace(FACTS, scores=None, perplexity=PERPLEXITY, use=use, origins=[Origin("text", "a sample")])
    assert "| masked, fixed masks | valid | 6.50 | 7.00 | 0.500 |" in model_card(facts).text
    (result,) = _metadata(facts)["model-index"][0]["results"]
    assert result["metrics"][0]["value"] == 6.5
    assert _metadata(facts)["pipeline_tag"] == {"masked": "fill-mask", "causal": "text-generation"}[use]
