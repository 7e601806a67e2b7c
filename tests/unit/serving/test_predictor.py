"""Ensembles, generated answers, and words of the pretrained model; tests/integration/test_predict.py has the rest."""

import io
import json
import sys
import time
from pathlib import Path

import pytest
import torch
from scipy.special import softmax
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, PreTrainedModel

from retrace.cli.predict import _rows
from retrace.core.errors import InputError
from retrace.core.paths import PRETRAINED
from retrace.core.settings import read_params
from retrace.datasets.squad import read_questions
from retrace.evaluation.outcomes import answers_of, logits_of
from retrace.methods import adapter
from retrace.models.heads import Head
from retrace.results.predictions import kept_epoch, read_epochs
from retrace.serving.predictor import _MASKS, Predictor, WordModel, _answer
from retrace.tasks.question_answering.windows import Span
from retrace.tokens.tokenizer import token_id
from tests.commands import refused, retrace
from tests.tiny import MASKED_FAMILIES, fine_tune, tiny_pretrained, tiny_questions, tiny_sentences, tiny_tokenizer
from tests.toy import Project, copy_settings

GUILD = "The guild of weavers was founded by Ada Lund in the year 1601."
ASKED = {"who founded the guild?": "Ada Lund", "when?": "1601", "was it full?": "", "of whom?": "weavers"}


TEXTS = ["the ale was stale", "the songs were charming"]


@pytest.fixture
def reviews(here: Path) -> Project:
    """A tiny pretrained model, and two reviews to tune it on for one epoch."""
    project = copy_settings(here)
    project.set_all({"precision": "fp32", "sst2.epochs": 1, "sst2.max_length": 32})
    tiny_pretrained(PRETRAINED)
    tiny_sentences(Path("data"), [f"{text}\t{label}" for label, text in enumerate(TEXTS)])
    return project


def test_generated_answers_are_those_of_the_stage(here: Path) -> None:
    """With a tiny model that has learned a few answers."""
    project = copy_settings(here)
    reading = {"lr": 0.01, "epochs": 40, "batch_size": 4, "max_length": 64, "max_answer_length": 8}
    reading |= {"answers": "generative", "optimizer.kind": "adamw"}
    changes = {f"squad.{name}": value for name, value in reading.items()}
    project.set_all({**changes, "finetune.seeds": [1, 2], "precision": "fp32"})
    tiny_pretrained(PRETRAINED, "llama")
    tiny_questions(Path("data"), GUILD, ASKED)
    fine_tune("squad", 1)
    rows = kept_epoch(read_epochs(Path("predictions/squad/full/1"), "question_answering")).rows
    questions = read_questions(Path("data/question_answering/squad/dev.json"))
    decided = answers_of(rows, questions).answers
    assert sorted(map(bool, decided)) == [False, True, True, True], "it has learned when there is no answer"
    given = [{"passage": question.context, "question": question.text} for question in questions]
    predictor = Predictor("squad", "full", [1], project.params())
    found = predictor.answers(given)
    assert [row["answer"] for row in found] == [answer or None for answer in decided]
    for column, key in (("score", "score"), ("null_score", "no_answer_score")):
        assert [row[key] for row in found] == pytest.approx(list(rows[column]), abs=1e-5)
    for row in found:
        if row["answer"]:
            assert GUILD[row["start"] :].startswith(row["answer"])
    again = [predictor.answers([row | {"question": f"\n{row['question']} "}])[0]["answer"] for row in given]
    assert again == [row["answer"] for row in found], "asked again, with white space around"
    with pytest.raises(InputError, match="--ensemble: squad has models that generate answers"):
        Predictor("squad", "full", [1, 2], project.params())


def test_an_ensemble_averages_the_probabilities_of_all_seeds(reviews: Project) -> None:
    reviews.set_all({"finetune.squad_methods": [], "finetune.seeds": [1, 2, 3]})
    settings = reviews.params()["sst2"]
    fine_tune("sst2", 1, 2, 3)

    def positive(*options: str) -> float:
        row = json.loads(retrace("predict", "sst2", "the ale was charming", *options).out)
        return row["probability"] if row["label"] == "positive" else 1 - row["probability"]

    alone = [positive("--seed", seed) for seed in "123"]
    assert len(set(alone)) == 3
    assert positive() == alone[0]
    assert positive("--ensemble") == pytest.approx(sum(alone) / 3, abs=2e-6)
    outs = [{"path": "models/sst2/full/1"}]
    recorded = {"precision": "fp32", "sst2": settings, "methods.full": {}}
    tuned = {"deps": [{"path": "models/pretrained"}], "params": {"params.yaml": recorded}, "outs": outs}
    rate, pretrained = {"params.yaml": {"lr": read_params()["lr"]}}, [{"path": "models/pretrained"}]
    lock = {"stages": {"finetune": tuned, "pretrain": {"params": rate, "outs": pretrained}}}
    Path("dvc.lock").write_text(json.dumps(lock))  # which is YAML too
    assert retrace("predict", "sst2", "the ale was charming").err == ""
    reviews.set("sst2", {**settings, "batch_size": 3})
    reviews.set("lr", 1.0)
    changed = {"sst2": "sst2 full 1 was trained", "lr": "pretrain ran"}
    said = "".join(
        f"note: params.yaml: {key} has changed since {since}; run dvc repro\n" for key, since in changed.items()
    )
    assert retrace("predict", "sst2", "the ale was charming").err == said
    reviews.set("sst2", {**settings, "max_length": 1000})
    said = "error: params.yaml: sst2.max_length: 1000 is not allowed"
    longest = "the model in models/pretrained reads at most 64 tokens\n"
    assert refused("predict", "sst2", "the ale was charming") == f"{said}; {longest}"
    reviews.set("sst2", settings)
    Path("models/pretrained").rename("models/elsewhere")
    done = retrace("predict", "sst2", "the ale was charming")
    assert (done.code, done.out) == (2, "")
    assert "models/pretrained: no such folder; run dvc repro" in done.err


def test_an_ensemble_of_bodies_that_a_method_draws_and_freezes(reviews: Project, monkeypatch) -> None:
    """Only their heads are saved, so each body is drawn again, from the seed of its run."""
    reviews.set_all({"finetune.seeds": [1, 2], "finetune.methods": ["frozen"]})
    monkeypatch.setattr("retrace.methods.frozen.FROM_RANDOM", True, raising=False)
    fine_tune("sst2", 1, 2, method="frozen")
    recorded = []
    for seed in "12":
        rows = kept_epoch(read_epochs(Path("predictions/sst2/frozen", seed), "classification")).rows
        recorded.append(softmax(logits_of(rows), axis=1))
    found = Predictor("sst2", "frozen", [1, 2], reviews.params()).probabilities([{"text": text} for text in TEXTS])
    assert found == pytest.approx(sum(recorded) / 2, abs=1e-5)


def test_a_method_that_adds_modules_and_freezes_nothing_is_loaded_back(reviews: Project, monkeypatch) -> None:
    """transformers would read the model without them; docs/architecture.md lets a method add modules."""
    reviews.set("sst2.lr", 0.01)

    def tune(model: PreTrainedModel, head: Head, settings: adapter.Settings) -> None:
        adapter.tune(model, head, settings)
        model.requires_grad_()

    monkeypatch.setattr("retrace.methods.full.tune", tune)
    monkeypatch.setattr("retrace.methods.full.Settings", adapter.Settings)
    fine_tune("sst2", 1)
    rows = kept_epoch(read_epochs(Path("predictions/sst2/full/1"), "classification")).rows
    found = Predictor("sst2", "full", [1], reviews.params()).probabilities([{"text": text} for text in TEXTS])
    assert found == pytest.approx(softmax(logits_of(rows), axis=1), abs=1e-5)


def test_an_ensemble_of_readers_averages_the_scores_of_tokens(here: Path) -> None:
    """The passage has one word, so that all have the same span."""
    settings = {"finetune.seeds": [1, 2], "precision": "fp32", "squad.epochs": 1, "squad.max_length": 64}
    copy_settings(here).set_all(settings)
    tiny_pretrained(PRETRAINED)
    tiny_questions(Path("data"), GUILD, ASKED)
    fine_tune("squad", 1, 2)
    Path("passage.txt").write_text("weavers")

    def scores(*options: str) -> tuple[float, float]:
        asked = ("--passage", "passage.txt", "--question", "of whom?")
        row = json.loads(retrace("predict", "squad", *asked, *options).out)
        return row["score"], row["no_answer_score"]

    one, other = (scores("--seed", seed) for seed in "12")
    assert one != other
    means = (one[0] + other[0]) / 2, (one[1] + other[1]) / 2
    assert scores("--ensemble") == pytest.approx(means, abs=2e-6)


@pytest.mark.parametrize(
    ("text", "null_score", "may_abstain", "said"),
    [("Ada", 1.0, True, ("Ada", 7, 1.0)), ("Ada", 3.0, True, (None, None, 3.0)), ("", 1.0, True, (None, None, 1.0)),
     ("Ada", 3.0, False, ("Ada", 7, None))],
)  # fmt: skip
def test_only_a_model_that_may_abstain_is_asked_for_the_score_of_no_answer(
    text: str, null_score: float, may_abstain: bool, said: tuple[str | None, int | None, float | None]
) -> None:
    found = _answer(Span(text, 7, 2.0, null_score), may_abstain)
    assert (found["answer"], found["start"], found["no_answer_score"]) == said
    assert found["score"] == 2.0


@pytest.mark.parametrize("line", ["good\n", '{"text": "good"}\n'])
def test_a_byte_order_mark_is_no_part_of_the_first_text(monkeypatch, line: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"\ufeff{line}\ufeff{line if line[0] != '{' else 'b'}"))
    first, second = _rows(("text",), None)
    assert (first, second["text"][0]) == ({"text": "good"}, "\ufeff")


def test_what_is_not_there_is_said_before_a_model_is_loaded(here: Path) -> None:
    project = copy_settings(here)
    said = "error: models/sst2/full/1: no such folder; run dvc repro, or dvc pull where others have run it\n"
    assert refused("predict", "sst2") == said
    for folder in ("sst2/full/1", "pretrained"):
        Path("models", folder).mkdir(parents=True)
    assert "data/classification/sst2/classes.json: no such file; run dvc repro" in refused("predict", "sst2")
    project.set("finetune.squad_methods", [])
    assert refused("predict", "squad").startswith("error: task: 'squad' is not what params.yaml lists")


def test_a_closed_standard_input_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match=r"^standard input is closed$"):
        list(_rows(("text",), None))


def test_a_mistake_at_the_end_of_a_line_is_on_that_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO('fine\n{"text": "fine"\nfine\n'))
    with pytest.raises(InputError, match=r"^standard input:2:16: not json"):
        list(_rows(("text",), None))


PARAMS = {"precision": "fp32"}
TOKENIZER = tiny_tokenizer()
CLS, SEP, MASK = (token_id(TOKENIZER, token) for token in ("[CLS]", "[SEP]", "[MASK]"))


def _ids(text: str) -> list[int]:
    return TOKENIZER.encode(text, add_special_tokens=False).ids


@torch.no_grad()
def _expected(of: type, ids: list[int], place: int) -> dict[str, float]:
    """What transformers says of the token at, or after, a place: word → probability, the likeliest five."""
    shares = of.from_pretrained(PRETRAINED).eval()(torch.tensor([ids])).logits[0, place].softmax(-1)  # pyright: ignore
    words = {TOKENIZER.decode([number]): share for number, share in enumerate(shares.tolist()) if number > MASK}
    return dict(sorted(words.items(), key=lambda item: -item[1])[:5])


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("family", MASKED_FAMILIES)
def test_each_masked_word_gets_the_likeliest_tokens(family: str) -> None:
    tiny_pretrained(PRETRAINED, family)
    ids = [CLS, *_ids("the"), MASK, *_ids("of the town was the"), MASK, SEP]
    found = WordModel(PARAMS).suggestions("the [MASK] of the town was the ___")
    assert len(found) == 2
    for suggestions, place in zip(found, (2, len(ids) - 2), strict=True):
        expected = _expected(AutoModelForMaskedLM, ids, place)
        assert dict(suggestions) == pytest.approx(expected, abs=1e-5)
        assert [word for word, _ in suggestions] == list(expected)


@pytest.mark.usefixtures("here")
def test_a_causal_model_goes_on_with_the_text() -> None:
    tiny_pretrained(PRETRAINED, "llama")
    ids = [CLS, *_ids("the river of the")]
    (found,) = WordModel(PARAMS).suggestions("the river of the")
    assert dict(found) == pytest.approx(_expected(AutoModelForCausalLM, ids, len(ids) - 1), abs=1e-5)


def test_a_long_run_of_spaces_is_searched_in_a_moment() -> None:
    began = time.process_time()
    assert not _MASKS.search("a" + " " * 20_000 + "b")
    assert time.process_time() - began < 0.5
