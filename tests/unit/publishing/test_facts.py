"""What a card is told of a model is what the files and params.yaml say."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from retrace.core.errors import InputError
from retrace.core.settings import read_params
from retrace.hub.pins import Pin
from retrace.publishing.card import RunResults, Trained
from retrace.publishing.load import read_tuning
from retrace.results.grid import Cell
from retrace.statistics.scales import Comparison
from tests.study import method_of
from tests.toy import ROOT

FULL, COMMIT = Cell("sst2", "full", 1), "b" * 40


def _task(epoch: int, accuracy: float, seed: str, of_seed: dict[str, str], **flags: dict[str, str]) -> dict[str, Any]:
    """A task in scores.json: one method, one seed, with flags of it, of the method and of the data."""
    figures = {"accuracy": accuracy}
    trial = {"epoch": epoch, "figures": figures, "intervals": {}, "before": {}, "flags": of_seed}
    method = method_of(figures, {seed: trial}, {}, {}) | {"flags": flags.get("method", {})}
    return {"headlines": [], "legend": {}, "baselines": {}, "methods": {"full": method}, "comparisons": [],
            "flags": flags.get("data", {})}  # fmt: skip


UNITS = {"perplexity_per_token": 147.0, "perplexity_per_word": 1.0, "bits_per_byte": 1.0}
SST2 = _task(1, 0.5, "1", {"one_class_only": "all"}, method={"not_above_scratch": "no"}, data={"test_in": "2"})


@pytest.fixture
def params(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The project's params in a folder with a few reports."""
    monkeypatch.chdir(tmp_path)
    for name in ("params.yaml", "data/params.yaml", "data/classification/sst2/classes.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text())
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
        Trained(Cell("sst2", "full", 2), params).scores()


def test_figures_of_a_published_model_are_of_the_test_set_where_there_is_one(params) -> None:
    tested = _task(2, 0.4, "1", {"not_above_tfidf": "so"})
    _write("reports/scores.json", {"sst2": SST2, "sst2-test": tested})
    full = Trained(FULL, params)
    scores = full.scores()
    assert (scores.trial.epoch, scores.trial.figures, scores.split) == (2, {"accuracy": 0.4}, "test")
    assert full.learned_nothing == {"not_above_tfidf": "so", "one_class_only on validation": "all"}
    assert Trained(FULL, params).origins()[-1].split == "test"


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
    return {"headlines": ["accuracy"], "legend": {"accuracy": {"scale": "fraction", "better": "higher"}},
            "baselines": {"tfidf": {"figures": {"accuracy": 0.66}, "intervals": {}}},
            "methods": _scored("full", 0.9, seeds, 0.2) | _scored("scratch", 0.7, seeds, -0.01),
            "comparisons": [asdict(pair)]}  # fmt: skip


def test_the_card_has_the_verdict_and_the_table_of_the_report(params) -> None:
    _write("reports/scores.json", {"sst2": _run((1, 2), "full")})
    _write("reports/perplexity-details.json", {"valid": {
        "masked": UNITS | {"perplexity_per_token": 4.9}, "unigram": UNITS, "beats_unigram": True, "flags": {},
    }})  # fmt: skip
    found = Trained(FULL, params).results()
    assert ["".join(text for text, _ in sentence) for sentence in found.verdict] == [
        "Pretraining is worth +20.0 points of accuracy on reviews (90.0 against 70.0).",
        "The language model’s perplexity is 4.9 per token; a unigram model’s is 147.",
        "Not above the best baseline: Scratch on reviews (tf-idf).",
    ]
    assert found.note.startswith("Reviews: accuracy, %. Means over 2 seeds; this model is of seed 1. 95% interval for ")
    assert found.table is not None
    assert [[str(cell) for cell in row] for row in found.table.rows] == [
        ["Full", "–", "90.0", "88.0 – 92.0", "1.41", "–"],
        ["Scratch", "–", "70.0", "68.0 – 72.0", "1.41", "–"],
        ["tf-idf", "", "66.0", "66.0 – 66.0", "", ""],
    ]
    assert "this model" not in Trained(None, params).results().note


def test_of_one_seed_or_without_scores_no_more_is_said_than_is_known(params) -> None:
    _write("reports/scores.json", {"sst2": _run((1,), "models differ")})
    found = Trained(FULL, params).results()
    assert found.verdict[-1] == [
        ("One seed: differences are of these models, and do not tell the methods apart.", False)
    ]  # fmt: skip
    assert "Means" not in found.note
    _write("reports/scores.json", {"sst2": SST2})  # which has no figure that models are judged by
    assert Trained(FULL, params).results() == RunResults([], "", None)
    Path("reports/scores.json").unlink()
    assert Trained(None, params).results() == RunResults([], "", None)


def test_a_tuning_has_the_settings_of_params_yaml(params) -> None:
    params["squad"]["question_match"] = True
    assert read_tuning(FULL, params).classes == ("negative", "positive")
    spans = read_tuning(Cell("squad", "full", 1), params)
    assert (spans.head, spans.question_match, spans.classes) == ("spans", True, ())
    params["squad"] |= {"question_match": False, "answers": "generative"}
    assert read_tuning(Cell("squad", "full", 1), params).head == "language_model"


def test_data_is_named_by_where_it_is_from(params) -> None:
    assert [origin.pin for origin in Trained(FULL, params).origins()] == [None, None]
    assert "embedded sample" in Trained(FULL, params).origins()[0].title
    params["data"] = "files"
    assert Trained(FULL, params).origins()[1].licence is None
    params["data"] = "hub"
    origin = {"repository": f"org/x@{COMMIT}", "config": "c", "licence": "mit"}
    _write("data/hub/card.json", {"origin": {"text": origin, "sst2": origin}})
    params["hub"]["sst2"] |= {"repository": f"org/x@{COMMIT}", "dev": None, "split": 0.8}
    text, sst2 = Trained(FULL, params).origins()
    assert (text.title, text.split) == ("WikiText", "validation")
    assert (sst2.pin, sst2.licence) == (Pin("org/x", COMMIT), "mit")
    assert sst2.split == "train, of which a part was held out"
    params["hub"]["classification"] = {"news": {"repository": f"org/news@{COMMIT}", "dev": "test"}}
    assert Trained(Cell("news", "full", 1), params).origins()[1].split == "test"
