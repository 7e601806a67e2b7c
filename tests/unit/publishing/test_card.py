"""The card is told what files and params.yaml say of a model; it says that, escaped, and nothing beside it."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from huggingface_hub import ModelCard

from retrace.core.errors import InputError
from retrace.core.settings import read_params
from retrace.evaluation.records import BaselineDetails, SeedDetails, TaskDetails
from retrace.hub.pins import Pin
from retrace.perplexity.measures import PerplexityReport
from retrace.publishing.bundle import Address, Published
from retrace.publishing.card import WORKS, Origin, Trained, hub_origin, model_card
from retrace.publishing.load import read_tuning
from retrace.report.blocks import Cell as TableCell
from retrace.report.blocks import Table
from retrace.results.grid import Cell
from retrace.statistics.scales import CURVES, Comparison, Figure
from retrace.tasks.question_answering.settings import AnswerSettings
from tests.study import method_of
from tests.toy import copy_settings

COMMIT = "a" * 40
TRIAL = SeedDetails(
    epoch=2, figures={"validation_loss": 0.5, "accuracy": 0.875, "matthews": 0.75},
    intervals={"accuracy": {"low": 0.8, "high": 0.95}}, before={"accuracy": 0.5},
)  # fmt: skip
SCORES = TaskDetails(
    baselines={
        "majority": BaselineDetails(figures={"accuracy": 0.25}, intervals={"accuracy": {"low": 0.125, "high": 0.375}})
    },
    legend={"accuracy": Figure("fraction", "higher", "accuracy"),
            "matthews": Figure("correlation", "higher", "matthews"),
            "validation_loss": CURVES["validation_loss"]},
    headlines=["accuracy"], methods={}, comparisons=[],
)  # fmt: skip
PUBLISHED = Published("transformers", "classifier", ("from a import b", "tokenizer = 1", "model = 2"))
ADDRESS = Address("org/name")
FULL = Cell("sst2", "full", 1)
FACTS: dict[str, Any] = {
    "cell": FULL, "family": "bert", "summary": "A model.", "started": {}, "flag_lines": [],
    "origins": [Origin("text", "a sample"), Origin("sst2", "a sample", licence="Apache-2.0")],
    "counts": Table(("data", "count"), [("sst2", "1,200")]),
    "training": lambda _: Table(("setting", "value"), [("lr", "0.001")]), "perplexity": None,
    "scored": [(SCORES, None, TRIAL)], "is_tested": False,
    "params": {"data": "files"}, "task_settings": None, "results": lambda: ([], "", None),
}  # fmt: skip
UNITS = {"perplexity_per_token": 6.5, "perplexity_per_word": 7.0, "bits_per_byte": 0.5}
PERPLEXITY = PerplexityReport.from_json(
    {part: {"masked": UNITS, "unigram": UNITS, "beats_unigram": None, "flags": {}} for part in ("valid", "test")}
)


def _model(**changes: Any) -> Any:
    """What is known of a model, except for these changes."""
    return SimpleNamespace(**FACTS | changes)


def _card(published: Published = PUBLISHED, address: Address = ADDRESS, **changes: Any) -> ModelCard:
    return model_card(_model(**changes), published, address, COMMIT)


def _metadata(card: ModelCard) -> dict[str, Any]:
    return yaml.safe_load(str(card).split("---\n")[1])


def test_figures_have_their_scale_interval_and_baseline() -> None:
    text = _card().text
    assert "| score | unit | this model | before tuning | majority class |" in text
    assert "| accuracy | % | 87.5 (80.0 – 95.0) | 50.0 | 25.0 (12.5 – 37.5) |" in text
    assert "| matthews | −1 to 1 | 0.7500 | – | – |" in text
    assert "| validation loss | nats | 0.5000 | – | – |" in text
    for line in ("| lr | 0.001 |", "| sst2 | 1,200 |", "Health: no flags.", "sst2: Apache-2.0."):
        assert line in text


def test_the_metadata_names_what_is_known() -> None:
    found = _metadata(_card())
    assert found.keys() == {"library_name", "pipeline_tag", "tags", "model-index"}
    (result,) = found["model-index"][0]["results"]
    assert result["metrics"] == [{"type": "accuracy", "value": 0.875, "name": "accuracy"}]
    assert result["dataset"]["type"] == "not-on-the-hub"


def test_data_of_the_hub_is_named_with_its_commit_licence_and_authors() -> None:
    origins = [
        hub_origin("text", Pin("Salesforce/wikitext", COMMIT), "wikitext-2-raw-v1", "validation", None),
        hub_origin("squad", Pin("rajpurkar/squad_v2", COMMIT), "squad_v2", "validation[:50%]", "other"),
    ]
    card = _card(origins=origins)
    text, found = card.text, _metadata(card)
    assert found["datasets"] == ["Salesforce/wikitext", "rajpurkar/squad_v2"]
    assert found["model-index"][0]["results"][0]["dataset"]["revision"] == COMMIT
    assert "CC BY-SA 3.0 and GFDL. Stephen Merity" in text
    assert "CC BY-SA 4.0. Pranav Rajpurkar" in text
    assert rf"SQuAD 2.0, rajpurkar/squad\_v2 at commit {COMMIT}, config squad\_v2" in text


def test_what_is_not_known_of_data_is_not_made_up() -> None:
    news = hub_origin("news", Pin("org/news", COMMIT), "default", "dev", None)
    text = _card(origins=[Origin("text", "files of one's own"), news]).text
    assert text.count("the licence is not known to Retrace.") == 2
    assert "text: files of one's own." in text
    assert not any(str(work["citation"]) in text for work in WORKS.values())


def _limits(published: Published = PUBLISHED, **changes: Any) -> list[str]:
    text = _card(published, **changes).text
    return text[text.index("## Limits") : text.index("## Licence")].split("\n\n")[1:-1]


@pytest.mark.parametrize(
    ("use", "said"),
    [("classifier", "It answers with one"), ("spans", "How a long passage is cut"), ("masked", "It fills in masked"),
     ("causal", "It continues a text")],
)  # fmt: skip
def test_the_limits_are_of_what_the_model_is_for(use: str, said: str) -> None:
    (limit,) = _limits(replace(PUBLISHED, use=use))
    assert limit.startswith(said)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"task_settings": SimpleNamespace(max_length=128, checkpoint="last")},
         ["It was trained on at most 128 tokens at once."]),
        ({"task_settings": SimpleNamespace(max_length=128, checkpoint="best"), "is_tested": True},
         ["It was trained on at most 128 tokens at once."]),
        ({"task_settings": SimpleNamespace(max_length=128, checkpoint="best")},
         ["It was trained on at most 128 tokens at once.",
          "The epoch was chosen by the validation loss, so the figures are slightly better than on new data."]),
        ({"params": {"data": "sample", "pretrain": {"intra_document_attention": True}}},
         ["In training, attention stayed within documents; transformers does not confine it where several share an "
          "input.",
          "The sample is a few thousand sentences about an invented country: the model knows nothing else."]),
    ],
)  # fmt: skip
def test_the_limits_say_what_the_figures_do_not(changes: dict[str, Any], said: list[str]) -> None:
    assert _limits(**changes)[1:] == said


def test_what_transformers_cannot_load_is_said() -> None:
    published = replace(PUBLISHED, library="retrace")
    assert _limits(published)[1:] == ["Retrace has to be installed to load it: transformers alone cannot."]


def test_flags_stand_before_everything_else() -> None:
    text = _card(flag_lines=["one class only: all 20 examples are called good"]).text
    assert text.index("Warning: one class only: all 20 examples are called good.") < text.index("## How to load it")
    assert "Health" not in text


def test_the_verdict_and_the_table_of_the_run_are_those_of_the_report() -> None:
    said = ["Pretraining is worth **+1.0 points** on <b>a|b</b>_*.", "One seed."]
    table = Table(("method", "score"), [("a_b|", TableCell("90.0 ≈", bold=True))], groups=[("", 1), ("my_task: F1", 1)])
    text = _card(results=lambda: (said, "Read [so](x).", table)).text
    shown = text[text.index("## What the run shows") : text.index("## How to load it")]
    assert shown.split("\n\n")[1:3] == [
        r"Pretraining is worth **+1.0 points** on \<b\>a\|b\</b\>\_\*.", "One seed."
    ]  # fmt: skip
    assert r"Read \[so\](x)." in shown
    assert r"| method | my\_task: F1, score |" in shown
    assert r"| a\_b\| | **90.0 ≈** |" in shown
    assert "What the run shows" not in _card().text


def test_text_from_data_is_escaped_and_stays_within_its_fence() -> None:
    evil = "<script>|[x](y)\n## Scores"
    published = replace(PUBLISHED, lines=("from a import b", "x = '```\\n# out'", "model = 1"))
    text = _card(published, flag_lines=[evil], counts=Table((evil,), [(evil,)])).text
    assert "<script>" not in text
    assert text.count("\n## Scores\n") == 1
    assert "````python\nfrom a import b\nx = '```\\n# out'\nmodel = 1\n````" in text


def test_what_training_started_from_is_named() -> None:
    started = {"from": f"org/other@{COMMIT}", "repository": "org/other", "license": "mit"}
    card = _card(started=started)
    assert f"Training started from org/other@{COMMIT}, whose licence is mit." in card.text
    assert _metadata(card)["base_model"] == "org/other"
    onto = Address("org/name", None, Pin("org/base", COMMIT))
    assert _metadata(_card(address=onto, started=started))["base_model"] == "org/base"
    assert "Training started" not in _card().text


@pytest.mark.parametrize(("use", "pipeline"), [("masked", "fill-mask"), ("causal", "text-generation")])
def test_a_language_model_has_its_perplexity(use: str, pipeline: str) -> None:
    published = replace(PUBLISHED, use=use)
    card = _card(published, cell=None, scored=[], perplexity=PERPLEXITY, origins=[Origin("text", "s")])
    assert "| masked, fixed masks | valid | 6.50 | 7.00 | 0.500 |" in card.text
    found = _metadata(card)
    assert found["model-index"][0]["results"][0]["metrics"][0]["value"] == 6.5
    assert found["pipeline_tag"] == pipeline


def _task(epoch: int, accuracy: float, of_seed: dict[str, str], **flags: dict[str, str]) -> dict[str, Any]:
    """A task in scores.json: one method, one seed, with flags of it, of the method and of the data."""
    figures = {"accuracy": accuracy}
    trial = {"epoch": epoch, "figures": figures, "intervals": {}, "before": {}, "flags": of_seed}
    method = method_of(figures, {"1": trial}, {}, {}) | {"flags": flags.get("method", {})}
    return {"headlines": [], "legend": {}, "baselines": {}, "methods": {"full": method}, "comparisons": [],
            "flags": flags.get("data", {})}  # fmt: skip


SST2 = _task(1, 0.5, {"one_class_only": "all"}, method={"not_above_scratch": "no"}, data={"test_in": "2"})


@pytest.fixture
def params(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The project's params in a folder with a few reports."""
    monkeypatch.chdir(tmp_path)
    copy_settings(tmp_path)
    _write("data/classification/sst2/classes.json", ["negative", "positive"])
    _write("reports/scores.json", {"sst2": SST2})
    return read_params()


def _write(path: str, value: Any) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(json.dumps(value))


def test_only_the_trials_own_flags_say_that_it_learned_nothing(params) -> None:
    full = Trained(FULL, params)
    assert full.learned_nothing == {"one_class_only": "all"}
    assert full.flags == {"one_class_only": "all", "not_above_scratch": "no", "test_in": "2"}


def test_flags_of_the_pretrained_model_name_their_split(params) -> None:
    valid = {"beats_unigram": False, "flags": {"not_above_unigram": "x"}}
    _write("reports/perplexity-details.json", {"valid": valid, "test": {"beats_unigram": True, "flags": {}}})
    pretrained = Trained(None, params)
    assert pretrained.learned_nothing == pretrained.flags == {"not_above_unigram on valid": "x"}


def test_what_was_not_scored_is_an_input_error(params) -> None:
    with pytest.raises(InputError, match="no figures of sst2 full 2; run dvc repro first"):
        assert Trained(Cell("sst2", "full", 2), params).scored


def test_figures_of_a_published_model_are_of_the_test_set_where_there_is_one(params) -> None:
    tested = _task(2, 0.4, {"not_above_tfidf": "so"})
    _write("reports/scores.json", {"sst2": SST2, "sst2-test": tested})
    full = Trained(FULL, params)
    _, _, trial = full.scored[0]
    assert (trial.epoch, trial.figures, full.is_tested) == (2, {"accuracy": 0.4}, True)
    assert full.learned_nothing == {"not_above_tfidf": "so", "one_class_only on validation": "all"}
    assert Trained(FULL, params).origins[-1].split == "test"


def _scored(method: str, accuracy: float, seeds: Sequence[int], ahead: float) -> dict[str, Any]:
    """A method by its mean accuracy and the least by which it is ahead of TF-IDF; two seeds lie to both sides."""
    ends = {"accuracy": {"low": accuracy - 0.02, "high": accuracy + 0.02}}
    values = {seed: accuracy + (0.01 * (2 * seed - 3) if len(seeds) == 2 else 0) for seed in seeds}
    trials = {str(seed): {"epoch": 1, "figures": {"accuracy": value}, "intervals": ends, "before": {}}
              for seed, value in values.items()}  # fmt: skip
    spread = {"accuracy": 0.0141} if len(seeds) == 2 else {}
    margin = {"ahead": {"tfidf": {"low": ahead, "high": ahead + 0.1}}}
    return {method: method_of({"accuracy": accuracy}, trials, ends, spread) | margin}


def _run(seeds: Sequence[int], verdict: str) -> dict[str, Any]:
    """SST-2 by the pretrained model and from random weights, beside a baseline."""
    pair = Comparison("accuracy", "full", "scratch", "methods", 0.2, 0.1, 0.3, "t", 0.01, 0.01, verdict, 0.1)
    return {"headlines": ["accuracy"],
            "legend": {"accuracy": {"scale": "fraction", "better": "higher", "name": "accuracy"}},
            "baselines": {"tfidf": {"figures": {"accuracy": 0.66}, "intervals": {}}},
            "methods": _scored("full", 0.9, seeds, 0.2) | _scored("scratch", 0.7, seeds, -0.01),
            "comparisons": [asdict(pair)]}  # fmt: skip


def test_the_card_has_the_verdict_and_the_table_of_the_report(params) -> None:
    _write("reports/scores.json", {"sst2": _run((1, 2), "full")})
    _write("reports/perplexity-details.json", {"valid": {
        "masked": UNITS, "unigram": UNITS | {"perplexity_per_token": 147.0}, "beats_unigram": True, "flags": {},
    }})  # fmt: skip
    said, note, table = Trained(FULL, params).results()
    assert said == [
        "Pretraining is worth **+20.0 points** of accuracy on reviews (90.0 against 70.0).",
        "The language model’s perplexity is **6.5 per token**; a unigram model’s is 147.",
        "Above a baseline in the mean, but not shown to be with 2 seeds: Scratch on reviews (tf-idf).",
    ]
    assert note.startswith("Reviews: accuracy, %. Means over 2 seeds; this model is of seed 1. 95% interval for ")
    assert table is not None
    assert [[str(cell) for cell in row] for row in table.rows] == [
        ["Full", "–", "90.0", "88.0 – 92.0", "1.41", "–"],
        ["Scratch", "–", "70.0", "68.0 – 72.0", "1.41", "–"],
        ["tf-idf", "", "66.0", "66.0 – 66.0", "", ""],
    ]
    assert "this model" not in Trained(None, params).results()[1]


def test_of_one_seed_or_without_scores_no_more_is_said_than_is_known(params) -> None:
    _write("reports/scores.json", {"sst2": _run((1,), "models differ")})
    said, note, _ = Trained(FULL, params).results()
    assert said[-1] == "One seed: differences are of these models, and do not tell the methods apart."
    assert "Means" not in note
    _write("reports/scores.json", {"sst2": SST2})  # which has no figure that models are judged by
    assert Trained(FULL, params).results() == ([], "", None)
    Path("reports/scores.json").unlink()
    assert Trained(None, params).results() == ([], "", None)


def test_the_settings_of_a_task_are_those_of_its_kind(params) -> None:
    params["sst2"]["max_length"] = 77
    settings = Trained(FULL, params).task_settings
    assert settings is not None
    assert settings.max_length == 77
    assert isinstance(Trained(Cell("squad", "full", 1), params).task_settings, AnswerSettings)
    assert Trained(None, params).task_settings is None


def test_a_tuning_has_the_settings_of_params_yaml(params) -> None:
    params["squad"]["question_match"] = True
    assert read_tuning(FULL, params).classes == ("negative", "positive")
    spans = read_tuning(Cell("squad", "full", 1), params)
    assert (spans.head, spans.question_match, spans.classes) == ("spans", True, ())
    params["squad"] |= {"question_match": False, "answers": "generative"}
    assert read_tuning(Cell("squad", "full", 1), params).head == "language_model"


def test_data_is_named_by_where_it_is_from(params) -> None:
    assert [origin.pin for origin in Trained(FULL, params).origins] == [None, None]
    assert "embedded sample" in Trained(FULL, params).origins[0].title
    params["data"] = "files"
    assert Trained(FULL, params).origins[1].licence is None
    params["data"] = "hub"
    origin = {"repository": f"org/x@{COMMIT}", "config": "c", "licence": "mit"}
    _write("data/hub/card.json", {"origin": {"text": origin, "sst2": origin}})
    params["hub"]["sst2"] |= {"repository": f"org/x@{COMMIT}", "dev": None, "split": 0.8}
    text, sst2 = Trained(FULL, params).origins
    assert (text.title, text.split) == ("WikiText", "validation")
    assert (sst2.pin, sst2.licence) == (Pin("org/x", COMMIT), "mit")
    assert sst2.split == "train, of which a part was held out"
    params["hub"]["classification"] = {"news": {"repository": f"org/news@{COMMIT}", "dev": "test"}}
    assert Trained(Cell("news", "full", 1), params).origins[1].split == "test"
