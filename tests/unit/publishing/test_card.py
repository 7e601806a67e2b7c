"""The card says what files and params.yaml say about a model, escaped, and nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from huggingface_hub import ModelCard

from retrace.core.errors import InputError
from retrace.core.files import write_json
from retrace.core.settings import read_params
from retrace.evaluation.records import DETAILS, BaselineDetails, SeedDetails, TaskDetails
from retrace.hub.pins import Pin
from retrace.perplexity.measures import PERPLEXITY_DETAILS as MEASURED
from retrace.perplexity.measures import PerplexityReport
from retrace.publishing.bundle import Address, LoadingCode
from retrace.publishing.card import WORKS, DataOrigin, Trained, hub_origin, model_card
from retrace.publishing.load import read_tuning
from retrace.report.blocks import Table, TableCell
from retrace.results.grid import RUNS, Cell
from retrace.statistics.scales import CURVES, Comparison, Figure, Shortfall
from retrace.tasks.question_answering.settings import AnswerSettings
from tests.study import RUN, method_of
from tests.toy import copy_settings

COMMIT = "a" * 40
TRIAL = SeedDetails(
    epoch=2, figures={"validation_loss": 0.5, "accuracy": 0.875, "matthews": 0.75},
    intervals={"accuracy": {"low": 0.8, "high": 0.95}}, before={"accuracy": 0.5},
)  # fmt: skip
MAJORITY = BaselineDetails(figures={"accuracy": 0.25}, intervals={"accuracy": {"low": 0.125, "high": 0.375}})
LEGEND = {"accuracy": Figure("fraction", "higher", "accuracy"), "matthews": Figure("correlation", "higher", "matthews")}
SCORES = TaskDetails(
    baselines={"majority": MAJORITY}, legend=LEGEND | CURVES, headlines=["accuracy"], methods={}, comparisons=[]
)
PUBLISHED = LoadingCode("transformers", "classifier", ("from a import b", "tokenizer = 1", "model = 2"))
ADDRESS = Address("org/name")
FULL, SQUAD = Cell("sst2", "full", 1), Cell("squad", "full", 1)
FACTS: dict[str, Any] = {
    "cell": FULL, "family": "bert", "summary": "A model.", "started": {}, "is_random": False,
    "tokenizer_saw_more": True, "has_own_task": False, "flag_lines": [],
    "origins": [DataOrigin("text", "a sample"), DataOrigin("sst2", "a sample", licence="Apache-2.0")],
    "counts": Table(("data", "count"), [("sst2", "1,200")]),
    "training": lambda _: Table(("setting", "value"), [("lr", "0.001")]), "perplexity": None,
    "scored": [(SCORES, None, TRIAL)], "is_tested": False, "may_abstain": True,
    "params": {"data": "files"}, "task_settings": None, "results": lambda: ([], "", None),
}  # fmt: skip
UNITS = {"perplexity_per_token": 6.5, "perplexity_per_word": 7.0, "bits_per_byte": 0.5}
VALID = {"masked": UNITS, "unigram": UNITS | {"perplexity_per_token": 147.0}, "beats_unigram": True, "flags": {}}


def _card(published: LoadingCode = PUBLISHED, address: Address = ADDRESS, **changes: Any) -> ModelCard:
    """The card of a model of which these facts are known, except for the changes."""
    facts = FACTS | changes
    model: Any = SimpleNamespace(**{"evaluated": next(iter(facts["origins"][-1:]), None)} | facts)
    return model_card(model, published, address, COMMIT)


def _metadata(card: ModelCard) -> dict[str, Any]:
    return yaml.safe_load(str(card).split("---\n")[1])


def test_figures_have_their_scale_interval_and_baseline() -> None:
    for line in (
        "| score | unit | this model | before fine-tuning | majority class |",
        "| accuracy | % | 87.5 (80.0 – 95.0) | 50.0 | 25.0 (12.5 – 37.5) |",
        "| matthews | −1 to 1 | 0.7500 | – | – |",
        "| validation loss | nats | 0.5000 | – | – |",
        "| lr | 0.001 |", "| sst2 | 1,200 |\n\n## How it was trained", "Health: no flags.", "sst2: Apache-2.0.",
    ):  # fmt: skip
        assert line in _card().text


def test_the_metadata_names_what_is_known() -> None:
    found = _metadata(_card())
    assert found.keys() == {"library_name", "pipeline_tag", "tags", "model-index"}
    (result,) = found["model-index"][0]["results"]
    assert result["metrics"] == [{"type": "accuracy", "value": 0.875, "name": "accuracy"}]
    legend = SCORES.legend | {"accuracy": Figure("fraction", "higher", "macro F1")}
    named = _metadata(_card(scored=[(SCORES.model_copy(update={"legend": legend}), None, TRIAL)]))
    assert named["model-index"][0]["results"][0]["metrics"][0]["name"] == "macro F1"
    assert result["dataset"]["type"] == "not-on-the-hub"


def test_the_threshold_above_which_nothing_is_answered_is_not_0_in_the_card_either() -> None:
    """4 of 10 questions have no answer, so 40 is the score of none. Before training, 0 was the best threshold."""
    figures = {"total": 10, "NoAns_total": 4, "best_f1": 40.0, "best_f1_thresh": 0.0}
    trial = SeedDetails(epoch=1, figures=figures, intervals={}, before=figures | {"best_f1": 60.0})
    legend = dict.fromkeys(("total", "NoAns_total"), Figure("count", "neither", "questions"))
    legend |= {"best_f1": Figure("percentage", "higher", "F1"), "best_f1_thresh": Figure("score", "neither", "at")}
    task = TaskDetails(baselines={}, legend=legend, headlines=["best_f1"], methods={}, comparisons=[])
    text = _card(scored=[(task, None, trial)]).text
    assert "| F1 | % | 40.0 | 60.0 |" in text
    assert "| at |  | – | 0.0000 |" in text
    said = "A best threshold of –: never answering scores best."
    assert [said in _card(may_abstain=may).text for may in (True, False)] == [True, False]


def test_data_of_the_hub_is_named_with_its_commit_licence_and_authors() -> None:
    origins = [
        hub_origin("text", Pin("Salesforce/wikitext", COMMIT), "wikitext-2-raw-v1", "validation", None),
        hub_origin("squad", Pin("rajpurkar/squad_v2", COMMIT), "squad_v2", "validation[:50%]", "other"),
    ]
    card = _card(origins=origins)
    found = _metadata(card)
    assert found["datasets"] == ["Salesforce/wikitext", "rajpurkar/squad_v2"]
    assert found["model-index"][0]["results"][0]["dataset"]["revision"] == COMMIT
    squad = rf"SQuAD 2.0, rajpurkar/squad\_v2 at commit {COMMIT}, config squad\_v2"
    for said in ("CC BY-SA 3.0 and GFDL. Stephen Merity", "CC BY-SA 4.0. Pranav Rajpurkar", squad):
        assert said in card.text


def test_a_task_of_a_collection_has_its_own_title_and_authors() -> None:
    sst2, cola = (hub_origin(name, Pin("nyu-mll/glue", COMMIT), name, "validation", None) for name in ("sst2", "cola"))
    assert (sst2.title, str(sst2.citation).partition(",")[0]) == ("SST-2", "Richard Socher")
    assert (cola.title, cola.citation) == ("nyu-mll/glue", None)


def test_what_is_not_known_of_data_is_not_made_up() -> None:
    news = hub_origin("news", Pin("org/news", COMMIT), "default", "dev", None)
    text = _card(origins=[DataOrigin("text", "files of one's own"), news]).text
    assert text.count("the licence is not known to Retrace.") == 2
    assert "text: files of one's own." in text
    assert not any(str(work["citation"]) in text for work in WORKS.values())


def _limits(published: LoadingCode = PUBLISHED, **changes: Any) -> list[str]:
    text = _card(published, **changes).text
    return text[text.index("## Limits") : text.index("## Licence")].split("\n\n")[1:-1]


def test_the_limits_are_of_what_the_model_is_for() -> None:
    uses = {"classifier": "It always predicts one", "spans": "Split long passages", "masked": "It fills in masked",
            "causal": "It continues a text"}  # fmt: skip
    for use, said in uses.items():
        (limit,) = _limits(replace(PUBLISHED, use=use))
        assert limit.startswith(said)


def test_the_limits_say_what_the_figures_do_not() -> None:
    last, best = (SimpleNamespace(max_length=128, epochs=2, checkpoint=kept) for kept in ("last", "best"))
    length = "It was trained on at most 128 tokens at once."
    assert _limits(task_settings=last)[1:] == _limits(task_settings=best, is_tested=True)[1:] == [length]
    chosen = "The epoch was chosen by the validation loss, so the figures may be slightly better than on new data."
    assert _limits(task_settings=best)[1:] == [length, chosen]
    once = SimpleNamespace(max_length=256, train_length=128, epochs=1, checkpoint="best")
    assert _limits(task_settings=once)[1:] == [length], "one epoch leaves nothing to choose"
    sample = {"data": "sample", "pretrain": {"intra_document_attention": True}}
    documents, invented = _limits(params=sample)[1:]
    assert documents.startswith("In training, attention stayed within documents; transformers does not do this where")
    assert invented == "The sample is about an invented country: the model knows nothing else."
    starts: list[dict[str, Any]] = [{"has_own_task": True}, {"started": {"from": "org/a@0123", "repository": "org/a"}}]
    for start in starts:
        found = _limits(params={"data": "sample", "pretrain": {}}, **start)
        assert found[-1] == "The sample is about an invented country."
    own = ["Retrace has to be installed to load it: transformers alone cannot."]
    assert _limits(replace(PUBLISHED, library="retrace"))[1:] == own
    graded = SimpleNamespace(max_length=128, epochs=1, checkpoint="last", question_match=True)
    assert "from the shares of words in word_shares.json; " in _limits(task_settings=graded)[-1]


def test_the_limits_speak_of_the_sample_only_if_the_model_has_read_it() -> None:
    """A published checkpoint that is only tuned on a task of one's own, or passed on unchanged, has not."""
    params, topics = {"data": "sample", "pretrain": {}}, DataOrigin("topics", "the publisher's own files")
    (limit,) = _limits(params=params, origins=[topics], has_own_task=True)
    assert limit.startswith("It always predicts one of its classes")
    unchanged = _card(params=params, origins=[], evaluated=DataOrigin("text", "a sample")).text
    assert "Nothing here: the checkpoint was used unchanged." in unchanged
    assert "## Licence" not in unchanged
    assert "invented country" not in unchanged


def test_the_limits_say_how_a_model_that_writes_answers_is_asked() -> None:
    """Nobody would guess the prompt that it was scored with."""
    asked = SimpleNamespace(max_length=128, epochs=1, checkpoint="last", answers="generative", max_answer_length=12)
    for abstains, end in ((True, "where the end of the text is more probable than the answer."), (False, "question.")):
        _, prompt, _ = _limits(replace(PUBLISHED, use="causal"), task_settings=asked, may_abstain=abstains)
        assert prompt.startswith('Ask it with the passage, "Question:", the question and "Answer:", with spaces')
        assert "at most 12 of them" in prompt
        assert prompt.endswith(end)


def test_flags_stand_before_everything_else() -> None:
    text = _card(flag_lines=["one class only: all 20 examples are called good"]).text
    assert text.index("Warning: one class only: all 20 examples are called good.") < text.index("## How to load it")
    assert "Health" not in text


def test_the_verdict_and_the_table_of_the_run_are_those_of_the_report() -> None:
    said = ["Pretraining is worth **+1.0 points** on <b>a|b</b>_*.", "One seed."]
    table = Table(("method", "score"), [("a_b|", TableCell("90.0 ≈", bold=True))], groups=[("", 1), ("my_task: F1", 1)])
    text = _card(results=lambda: (said, "Read [so](x).", table)).text
    shown = text[text.index("## What the run shows") : text.index("## How to load it")]
    worth = r"Pretraining is worth **+1.0 points** on \<b\>a\|b\</b\>\_\*."
    assert shown.split("\n\n")[1:3] == [worth, "One seed."]
    for line in (r"Read \[so\](x).", r"| method | my\_task: F1, score |", r"| a\_b\| | **90.0 ≈** |"):
        assert line in shown
    assert "What the run shows" not in _card().text


def test_text_from_data_is_escaped_and_stays_within_its_fence() -> None:
    evil = "<script>|[x](y)\n## Scores"
    published = replace(PUBLISHED, lines=("from a import b", "x = '```\\n# out'", "model = 1"))
    text = _card(published, flag_lines=[evil], counts=Table((evil,), [(evil,)])).text
    assert "<script>" not in text
    assert text.count("\n## Scores") == 1
    assert "````python\nfrom a import b\nx = '```\\n# out'\nmodel = 1\n````" in text


def test_what_training_started_from_is_named() -> None:
    started = {"from": f"org/other@{COMMIT}", "repository": "org/other", "license": "mit"}
    card = _card(started=started)
    assert f"Training started from org/other@{COMMIT}, whose licence is mit." in card.text
    several = _card(started=started | {"license": ["mit", "cc0-1.0"]})
    assert "whose licence is mit, cc0-1.0." in several.text
    assert _metadata(card)["base_model"] == "org/other"
    onto = Address("org/name", None, Pin("org/base", COMMIT))
    assert _metadata(_card(address=onto, started=started))["base_model"] == "org/base"
    assert "Training started" not in _card().text


@pytest.mark.parametrize(("use", "pipeline"), [("masked", "fill-mask"), ("causal", "text-generation")])
def test_a_language_model_has_its_perplexity(use: str, pipeline: str) -> None:
    """One that is not defined is no figure for the hub."""
    published = replace(PUBLISHED, use=use)
    report = PerplexityReport.from_json({"valid": VALID | {"pseudo": UNITS | {"perplexity_per_token": None}}})
    card = _card(published, cell=None, scored=[], perplexity=report, origins=[DataOrigin("text", "s")])
    assert "| masked, fixed masks | valid | 6.50 | 7.00 | 0.500 |" in card.text
    found = _metadata(card)
    (result,) = found["model-index"][0]["results"]
    assert [(metric["type"], metric["value"]) for metric in result["metrics"]] == [("masked_perplexity", 6.5)]
    assert found["pipeline_tag"] == pipeline


def _method(
    accuracy: float, of_seed: Mapping[str, str] = {}, flags: Mapping[str, str] = {}, epoch: int = 1,
    seeds: Sequence[int] = (1,), ahead: float = 0.0,
) -> dict[str, Any]:  # fmt: skip
    """A method in scores.json, with flags of each seed and of all, and the least by which it is ahead of TF-IDF."""
    ends = {"accuracy": {"low": accuracy - 0.02, "high": accuracy + 0.02}}
    trial = {"epoch": epoch, "figures": {"accuracy": accuracy}, "intervals": ends, "before": {}, "flags": of_seed}
    found = method_of({"accuracy": accuracy}, {str(seed): trial for seed in seeds}, ends, {"accuracy": 0.0141})
    return found | {"flags": flags, "ahead": {"tfidf": {"low": ahead, "high": ahead + 0.1}}}


UNJUDGED = {"headlines": [], "legend": {}, "baselines": {}, "comparisons": []}
FLAGGED = _method(0.5, {"one_class_only": "all"}, {"not_above_scratch": "no"})
SST2 = UNJUDGED | {"methods": {"full": FLAGGED}, "flags": {"test_in": "2"}}


@pytest.fixture
def params(here: Path) -> dict[str, Any]:
    """The project's params in a folder with a few reports."""
    copy_settings(here)
    write_json(Path("data/classification/sst2/classes.json"), ["negative", "positive"])
    write_json(DETAILS, {"sst2": SST2})
    params = read_params()
    params["tokenizer"] |= {"train_on": ["text"], "with_questions": False}
    return params


def test_the_card_says_that_a_model_abstains_only_if_it_does(params) -> None:
    """One whose training questions all have an answer is scored on its best span, whatever the first token scores."""
    trial = {"epoch": 1, "figures": {"f1": 50.0}, "intervals": {}, "before": {}}
    counts, curve = {"answered": 1, "answerable": 1, "questions": 1}, {"threshold": [0.0], "f1": [50.0]}
    for columns, said in (({}, "whatever the first token"), (curve, "no answer where the first token scores higher")):
        method = method_of({"f1": 50.0}, {"1": trial}, {}, {}, **counts, threshold_curve=columns)
        write_json(DETAILS, {"squad": UNJUDGED | {"methods": {"full": method}}})
        may_abstain = Trained(SQUAD, params).may_abstain
        assert said in _limits(replace(PUBLISHED, use="spans"), may_abstain=may_abstain)[0]


def test_only_the_trials_own_flags_say_that_it_learned_nothing(params) -> None:
    full = Trained(FULL, params)
    assert full.learned_nothing == {"one_class_only": "all"}
    assert full.flags == {"one_class_only": "all", "not_above_scratch": "no", "test_in": "2"}


def test_flags_of_the_pretrained_model_name_their_split(params) -> None:
    valid = {"beats_unigram": False, "flags": {"not_above_unigram": "x"}}
    write_json(MEASURED, {"valid": valid, "test": {"beats_unigram": True, "flags": {}}})
    pretrained = Trained(None, params)
    assert pretrained.learned_nothing == pretrained.flags == {"not_above_unigram on valid": "x"}
    assert pretrained.flag_lines == ["not above a unigram model on validation text: x"]


def test_a_text_of_unknown_tokens_does_not_say_that_the_pretrained_model_learned_nothing(params) -> None:
    write_json(MEASURED, {"valid": {"beats_unigram": True, "flags": {"unknown_tokens": "12.0% of the tokens"}}})
    pretrained = Trained(None, params)
    assert pretrained.learned_nothing == {}
    assert pretrained.flag_lines == ["unknown tokens on validation text: 12.0% of the tokens"]


def test_a_class_that_is_never_predicted_does_not_say_that_a_model_learned_nothing(params) -> None:
    write_json(DETAILS, {"sst2": UNJUDGED | {"methods": {"full": _method(0.5, {"never_predicted": "no b"})}}})
    full = Trained(FULL, params)
    assert (full.learned_nothing, full.flags) == ({}, {"never_predicted": "no b"})


def test_flags_are_said_as_in_the_report_with_the_split_that_they_are_of(params) -> None:
    worse = Shortfall("accuracy", 0.5, "tfidf", 0.75, -0.375, -0.125)
    method = _method(0.5)
    method["seeds"]["1"]["flags"] = {"not_above_tfidf": asdict(worse)}
    task = UNJUDGED | {"legend": {"accuracy": asdict(LEGEND["accuracy"])}, "methods": {"full": method}}
    shared = {name: {"flags": {f"{name}_in_training": "2 of 30"}} for name in ("dev", "test")}
    write_json(DETAILS, {"sst2": task | shared["dev"], "sst2-test": task | shared["test"]})
    said = "accuracy 50.0, TF-IDF 75.0; difference −25.0 (95% interval −37.5 to −12.5)"
    assert Trained(FULL, params).flag_lines == [
        f"worse than TF-IDF: {said}",
        f"worse than TF-IDF on validation: {said}",
        "test examples in the training data: 2 of 30",
        "validation examples in the training data: 2 of 30",
    ]


def test_what_was_not_scored_is_an_input_error(params) -> None:
    with pytest.raises(InputError, match="no figures of sst2 full 2; run dvc repro first"):
        assert Trained(Cell("sst2", "full", 2), params).scored


def test_figures_of_a_published_model_are_of_the_test_set_where_there_is_one(params) -> None:
    tested = {"methods": {"full": _method(0.4, {"not_above_tfidf": "so"}, epoch=2)}}
    write_json(DETAILS, {"sst2": SST2, "sst2-test": UNJUDGED | tested})
    full = Trained(FULL, params)
    _, _, trial = full.scored[0]
    assert (trial.epoch, trial.figures, full.is_tested) == (2, {"accuracy": 0.4}, True)
    assert full.learned_nothing == {"not_above_tfidf": "so", "one_class_only on validation": "all"}
    splits = [origin.split for origin in full.origins]
    assert (splits, full.evaluated.split) == (["validation", "test"], "test"), "running text has no test set here"


def _run(seeds: Sequence[int], verdict: str) -> dict[str, Any]:
    """SST-2 by the pretrained model and from random weights, beside a baseline."""
    pair = Comparison("accuracy", "full", "scratch", "methods", 0.2, 0.1, 0.3, "t", 0.01, 0.01, verdict, 0.1)
    return {"headlines": ["accuracy"], "comparisons": [asdict(pair)],
            "legend": {"accuracy": {"scale": "fraction", "better": "higher", "name": "accuracy"}},
            "baselines": {"tfidf": {"figures": {"accuracy": 0.66}, "intervals": {}}},
            "methods": {"full": _method(0.9, seeds=seeds, ahead=0.2),
                        "scratch": _method(0.7, seeds=seeds, ahead=-0.01)}}  # fmt: skip


def test_the_card_has_the_verdict_and_the_table_of_the_report(params) -> None:
    write_json(DETAILS, {"sst2": _run((1, 2), "full")})
    write_json(MEASURED, {"valid": VALID})
    said, note, table = Trained(FULL, params).results()
    assert said == [
        "Pretraining is worth **+20.0 points** of accuracy on reviews (90.0 against 70.0 from scratch).",
        "The language model’s perplexity is **6.5 per token**; a unigram model’s is 147.0.",
        "Better than a baseline, but not significantly with 2 seeds: Scratch on reviews (TF-IDF).",
    ]
    assert note.startswith("Reviews: accuracy, %. Means over 2 seeds; this model is of seed 1. 95% interval over ")
    assert table is not None
    assert [[str(cell) for cell in row] for row in table.rows] == [
        ["Full", "–", "90.0", "88.0 – 92.0", "1.41", "–"],
        ["Scratch", "–", "70.0", "68.0 – 72.0", "1.41", "–"],
        ["TF-IDF", "", "66.0", "66.0 – 66.0", "", ""],
    ]
    assert "this model" not in Trained(None, params).results()[1]


def test_the_card_speaks_of_baselines_where_its_table_has_some(params) -> None:
    """A baseline has no area under the ROC curve, as it gives no probabilities."""
    for figures, is_said in (({"accuracy": 0.66}, True), ({}, False)):
        baselines = {"tfidf": {"figures": figures, "intervals": {}}}
        write_json(DETAILS, {"sst2": _run((1, 2), "full") | {"baselines": baselines}})
        _, note, _ = Trained(FULL, params).results()
        assert ("The last rows are baselines" in note) == is_said


def test_a_method_of_another_model_is_not_set_against_full_fine_tuning_in_the_card_either(params) -> None:
    """As in the report: LoRA on a checkpoint of its own is in the table, but no cheaper way to tune the same model."""
    params["methods"] |= {"full": {}, "lora": {}}
    params["finetune"] |= {"tasks": ["sst2"], "methods": ["full", "lora"], "squad_methods": [], "seeds": [1]}
    run = _run((1,), "models differ")
    run["methods"]["lora"] = run["methods"].pop("scratch")
    run["comparisons"][0] |= {"second": "lora", "difference": 0.2}
    write_json(DETAILS, {"sst2": run})
    for method, trained in (("full", 8), ("lora", 2)):
        path = (RUNS / "sst2" / method / "1").with_suffix(".json")
        write_json(path, RUN.model_copy(update={"parameters": 8, "trained_parameters": trained}).to_json())
    for checkpoint, is_said in ((None, True), ("bert", False)):
        params["methods"]["lora"]["checkpoint"] = checkpoint
        said, _, table = Trained(FULL, params).results()
        sentence = "LoRA trains **25.0% of the weights**; against full fine-tuning it scores −20.0 points on reviews."
        assert (sentence in said) == is_said
        assert table is not None
        assert [str(cell) for cell in table.rows[1]][:2] == ["LoRA", "25.0"]


def test_with_one_seed_or_without_scores_the_card_claims_no_more_than_is_known(params) -> None:
    write_json(DETAILS, {"sst2": _run((1,), "models differ")})
    said, note, _ = Trained(FULL, params).results()
    assert said[-1] == "With one seed, these differences are between trained models and say nothing about the methods."
    assert "Means" not in note
    write_json(DETAILS, {"sst2": SST2})  # which has no figure that models are judged by
    assert Trained(FULL, params).results() == ([], "", None)
    DETAILS.unlink()
    assert Trained(None, params).results() == ([], "", None)


def test_the_settings_of_a_task_are_those_of_its_kind_with_the_epochs_of_the_method(params) -> None:
    """The card says that one of two epochs was chosen; with a single epoch there was no choice."""
    params["sst2"] |= {"epochs": 1, "max_length": 77}
    params["methods"]["full"], params["methods"]["lora"] = {}, {"epochs_factor": 2}
    for method, epochs in (("full", 1), ("lora", 2)):
        settings = Trained(Cell("sst2", method, 1), params).task_settings
        assert settings is not None
        assert (settings.epochs, settings.max_length) == (epochs, 77)
        said = "The epoch was chosen by the validation loss"
        assert any(said in limit for limit in _limits(task_settings=settings)) == (epochs > 1)
    assert isinstance(Trained(SQUAD, params).task_settings, AnswerSettings)
    assert Trained(None, params).task_settings is None


def test_a_tuning_has_the_settings_of_params_yaml(params) -> None:
    params["squad"]["question_match"] = True
    assert read_tuning(FULL, params).classes == ("negative", "positive")
    assert read_tuning(Cell("sst2", "full", 2), params).seed == 2
    spans = read_tuning(SQUAD, params)
    assert (spans.head, spans.question_match, spans.classes) == ("spans", True, ())
    params["squad"] |= {"question_match": False, "answers": "generative"}
    assert read_tuning(SQUAD, params).head == "language_model"


def test_data_is_named_by_where_it_is_from(params) -> None:
    assert [origin.pin for origin in Trained(FULL, params).origins] == [None, None]
    assert "generated sample" in Trained(FULL, params).origins[0].title
    params["tokenizer"]["train_on"] = ["text", "squad", "sst2"]
    assert [origin.name for origin in Trained(FULL, params).origins] == ["text", "squad", "sst2"]
    assert [origin.name for origin in Trained(SQUAD, params).origins] == ["text", "sst2", "squad"]
    assert (Trained(None, params).data, Trained(None, params).evaluated.name) == (["text", "squad", "sst2"], "text")
    scratch = Trained(Cell("sst2", "scratch", 1), params)
    assert (scratch.data, scratch.is_random) == (["sst2"], True)
    params["tokenizer"]["train_on"] = ["text"]
    params["data"] = "files"
    assert Trained(FULL, params).origins[1].licence is None
    params["data"] = "hub"
    origin = {"repository": f"org/x@{COMMIT}", "config": "c", "licence": "mit"}
    for folder in ("text", "classification/sst2"):
        write_json(Path("data", folder, "card.json"), {"origin": origin})
    params["hub"]["sst2"] |= {"repository": f"org/x@{COMMIT}", "dev": None, "split": 0.8}
    text, sst2 = Trained(FULL, params).origins
    assert (text.title, text.split) == ("WikiText", "validation")
    assert (sst2.pin, sst2.licence) == (Pin("org/x", COMMIT), "mit")
    assert sst2.split == "train, of which a part was held out"
    params["hub"]["sst2"] |= {"dev": "validation", "split": None, "stream": 1500}
    assert Trained(FULL, params).origins[1].split == "validation, the first 1,500 rows"
    params["hub"]["classification"] = {"news": {"repository": f"org/news@{COMMIT}", "dev": "test"}}
    news = Cell("news", "full", 1)
    assert Trained(news, params).origins[1].split == "test"
    params["hub"]["classification"]["news"] |= {"dev": "validation[:50%]", "test": "validation[50%:]"}
    assert Trained(news, params).evaluated.split == "validation[:50%]"
    assert [Trained(cell, params).has_own_task for cell in (None, FULL, SQUAD, news)] == [False] * 3 + [True]
    write_json(DETAILS, {"news-test": UNJUDGED | {"methods": {"full": _method(0.4)}}})
    assert Trained(news, params).evaluated.split == "validation[50%:]"


VERSIONS = {"torch": "0.1", "transformers": "0.2", "numpy": "0.3"}


ORIGIN = {"commit": "b" * 40, "clean": True, "date": "2026-11-22", "machine": "A machine", "versions": VERSIONS}


def _settings(of: Cell | None, params: dict[str, Any]) -> dict[str, str]:
    """The table of a model's training, as it stands in the card."""
    write_json((RUNS / (of.path if of else "pretrain")).with_suffix(".json"), RUN.to_json() | {"origin": ORIGIN})
    return {str(key): str(value) for key, value in Trained(of, params).training("c" * 40).rows}


def test_versions_are_those_that_the_run_had_and_not_those_that_publish_it(params) -> None:
    found = _settings(None, params)
    assert found["git commit"] == "c" * 40
    assert {name: found.get(name) for name in VERSIONS} == VERSIONS | {"numpy": None}
    assert (found["precision used"], found["precision"]) == ("fp32", "auto"), "of the run, and as it was asked for"


def test_a_checkpoint_has_its_own_sizes_and_tokenizer(params) -> None:
    write_json(DETAILS, {"sst2": SST2 | {"methods": {name: _method(0.5) for name in ("scratch", "other")}}})
    params["methods"]["other"] = {"method": "scratch", "checkpoint": "llama"}
    other = _settings(Cell("sst2", "other", 1), params)
    params["model"]["checkpoint"], params["tokenizer"]["train_on"] = f"org/bert@{COMMIT}", ["text"]
    scratch = _settings(Cell("sst2", "scratch", 1), params)
    read = {"tokenizer.train_on", "tokenizer.with_questions"}
    for found, given in ((other, set[str]()), (scratch, {"family", "model.checkpoint", *read})):
        assert {key for key in found if key.startswith(("family", "model.", "tokenizer."))} == given


def test_the_settings_are_those_that_made_the_model(params) -> None:
    """A model that started from random weights has its sizes in the card, and no settings of pretraining."""
    write_json(DETAILS, {"sst2": SST2 | {"methods": {name: _method(0.5) for name in ("full", "scratch", "lora")}}})
    pretrained, full, scratch = (_settings(of, params) for of in (None, FULL, Cell("sst2", "scratch", 1)))
    assert "pretrain.epochs" in pretrained.keys() & full.keys() - scratch.keys()
    assert "model.hidden_size" in pretrained.keys() & full.keys() & scratch.keys()
    assert "sst2.epochs" in full.keys() & scratch.keys() - pretrained.keys()


def test_a_method_of_ones_own_that_starts_at_random_is_of_no_pretraining(params, monkeypatch) -> None:
    """Such as a copy of scratch.py under another name, as `retrace check` asks for where an entry has one."""
    assert (Trained(FULL, params).data, Trained(FULL, params).is_random) == (["text", "sst2"], False)
    monkeypatch.setattr("retrace.methods.full.FROM_RANDOM", True, raising=False)
    assert (Trained(FULL, params).data, Trained(FULL, params).is_random) == (["sst2"], True)


def test_a_checkpoint_whose_weights_were_drawn_anew_is_not_what_training_started_from(params) -> None:
    facts = {"from": f"org/a@{COMMIT}", "repository": "org/a", "license": "mit"}
    random = ((facts | {"random": seed}, {}) for seed in (0, 1))
    for found, started in ((facts, facts), *random, ({"from": None}, {})):
        write_json(Path("models/pretrained/source.json"), found)
        assert Trained(FULL, params).started == started


def test_a_model_that_began_at_random_says_so(params) -> None:
    said = "Its weights were random; only its tokenizer was trained on more text than the following."
    assert [said in _card(is_random=is_random).text for is_random in (False, True)] == [False, True]
    assert "Its weights were random.\n" in _card(is_random=True, tokenizer_saw_more=False).text
    assert Trained(Cell("sst2", "scratch", 1), params).started == {}


def test_a_model_that_began_with_a_checkpoint_of_random_weights_says_so(params) -> None:
    """A control for what the checkpoint's own weights are worth, whose card would read like theirs."""
    params["methods"]["full"] = {"checkpoint": "llama"}
    facts: dict[str, Any] = {"from": f"org/a@{COMMIT}", "repository": "org/a"}
    for found, is_random in ((facts, False), (facts | {"random": 0}, True)):
        write_json(Path("data/checkpoints/llama/source.json"), found)
        trained = Trained(FULL, params)
        assert (trained.is_random, trained.started == {}, trained.data) == (is_random, is_random, ["sst2"])


def test_only_what_was_read_is_what_it_was_trained_on(params) -> None:
    scratch, full = Cell("sst2", "scratch", 1), FULL
    params["tokenizer"]["train_on"] = ["sst2"]
    assert not Trained(scratch, params).tokenizer_saw_more
    params["tokenizer"]["train_on"] = ["text", "sst2"]
    assert Trained(scratch, params).tokenizer_saw_more
    assert Trained(full, params).data == ["text", "sst2"]
    params["pretrain"]["text_epochs"] = params["pretrain"]["epochs"]
    assert Trained(None, params).data == ["text"]
    params["pretrain"] |= {"epochs": 0, "text_epochs": 0}
    assert Trained(full, params).data == ["sst2"]
    assert Trained(None, params).data == []
