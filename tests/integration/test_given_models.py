"""Starting from given weights: every stage after it, for models in the layouts that the families were published in."""

import json

import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from retrace.core.paths import sentences_path
from retrace.datasets.examples import read_sentences
from retrace.finetuning.method import read_method
from retrace.hub.pins import folder_digest
from retrace.results.predictions import read_epochs
from retrace.tokens.tokenizer import TOKENIZER_FILES
from tests.hub.content.models import BERT, LLAMA, MODERNBERT, ROBERTA, published_models, write_model
from tests.toy import TOY, Project

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

LONGEST = TOY["sst2"]["max_length"]
UNUSED = {"hidden_size": 8, "layers": 1, "heads": 1, "intermediate_size": 8, "max_positions": 8}  # not the model's


@pytest.fixture
def given(project: Project) -> Project:
    """A project that is told to pass weights on as they are."""
    project.set_all({
        **{f"model.{key}": value for key, value in UNUSED.items()},
        "pretrain.epochs": 0,
        "squad.max_length": 64,
        "metrics.bootstrap_samples": 200,
    })  # fmt: skip
    return project


def _start_from(project: Project, family: str, name: str) -> dict[str, bytes]:
    """Put a published model into the project's folder `weights` and pin it."""
    folder = write_model(project.folder / "weights", name)
    project.set_all({"family": family, "model.checkpoint": f"weights@{folder_digest(folder)}"})
    return published_models()[name]


def _run(project: Project, *stages: str) -> None:
    for stage in stages:
        project.stage(*stage.split())


def _curve(project: Project) -> list[list[str]]:
    lines = (project.folder / "reports/curves/pretrain/epochs.csv").read_text().splitlines()
    return [line.split(",") for line in lines[1:]]


@pytest.mark.parametrize(
    ("family", "name", "method"),
    [
        ("bert", BERT, "full"),
        ("roberta", ROBERTA, "full"),
        ("modernbert", MODERNBERT, "adapter"),
        ("llama", LLAMA, "full"),
    ],
)
def test_given_weights_go_through_every_stage(given: Project, family: str, name: str, method: str) -> None:
    published = _start_from(given, family, name)
    given.set_all({"finetune.methods": [method], "finetune.squad_methods": [method]})
    _run(given, "sources.sample", "sources.model", "tokenize", "pretrain", "perplexity_eval")
    pretrained = given.folder / "models/pretrained"
    weights, before = (load_file(folder / "model.safetensors") for folder in (pretrained, given.folder / "weights"))
    assert weights.keys() == before.keys()
    assert all(torch.equal(weight, before[key].float()) for key, weight in weights.items())
    assert json.loads((pretrained / "config.json").read_text())["dtype"] == "float32"
    ((epoch, training, _, perplexity),) = _curve(given)
    assert (epoch, training) == ("0", "")
    assert float(perplexity) > 1
    assert ("causal" if family == "llama" else "pseudo") in (given.folder / "reports/perplexity.json").read_text()

    cell = f"--method {method} --seed 1"
    _run(given, f"finetune_sst2 {cell}", f"finetune_squad {cell}")
    if family == "llama":
        given.set_all({"squad.answers": "generative", "squad.max_answer_length": 8})
        _run(given, f"finetune_squad {cell}")
    for folder in (pretrained, given.folder / f"models/sst2/{method}/1", given.folder / f"models/squad/{method}/1"):
        for file in published.keys() & set(TOKENIZER_FILES):
            assert (folder / file).read_bytes() == published[file]
    if method == "full":
        _assert_transformers_answers_the_same(given)

    _run(given, "evaluate", "report")
    report = (given.folder / "reports/report.md").read_text()
    assert ("causal, sliding windows" in report) == (family == "llama")
    assert f"Training started from the weights of {given.params()['model']['checkpoint']}." in report
    assert f"| model.checkpoint | {given.params()['model']['checkpoint']} |" in report


def _assert_transformers_answers_the_same(project: Project) -> None:
    """Without Retrace, from the folder alone."""
    folder = project.folder / "models/sst2/full/1"
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForSequenceClassification.from_pretrained(folder)
    epochs = read_epochs(project.folder / "predictions/sst2/full/1", "classification")[1:]
    logits_there = min(epochs, key=lambda epoch: epoch.validation_loss).rows[["logit_0", "logit_1"]].to_numpy()
    sentences = read_sentences(sentences_path(project.folder / "data/sample", "dev"))
    for sentence, expected in zip(sentences, logits_there, strict=True):
        with torch.no_grad():
            given = tokenizer(sentence.text, truncation=True, max_length=LONGEST, return_tensors="pt")
            logits = model.eval()(**given).logits[0]
        assert logits.tolist() == pytest.approx(expected, abs=0.02)  # training may be in bf16


@pytest.mark.parametrize(("family", "name"), [("bert", BERT), ("llama", LLAMA)])
def test_given_weights_are_trained_on(given: Project, family: str, name: str) -> None:
    _start_from(given, family, name)
    given.set_all({"pretrain.epochs": 2, "pretrain.next_sentence": family == "bert"})
    _run(given, "sources.sample", "sources.model", "tokenize", "pretrain")
    curve = _curve(given)
    assert [row[0] for row in curve] == ["0", "1", "2"]
    assert float(curve[2][2]) < float(curve[0][2])
    assert family != "bert" or all(0 <= float(row[-1]) <= 1 for row in curve)  # how often the next sentence is known
    folders = (given.folder / name for name in ("models/pretrained", "weights"))
    weights, before = (load_file(folder / "model.safetensors") for folder in folders)
    assert weights.keys() == before.keys()
    assert not any(torch.equal(weight, before[key].float()) for key, weight in weights.items() if "proj" in key)


def test_methods_start_from_what_bert_learnt_of_pairs(given: Project) -> None:
    _start_from(given, "bert", BERT)
    _run(given, "sources.sample", "sources.model", "tokenize", "pretrain")
    for method in ("scratch", "frozen", "lora"):
        _run(given, f"finetune_sst2 --method {method} --seed 1", f"finetune_squad --method {method} --seed 1")
        rows = pq.read_table(given.folder / f"predictions/squad/{method}/1/predictions.parquet").num_rows
        assert rows == 96 * (1 + read_method(given.params(), method, "squad").settings.epochs_factor)


def test_a_block_may_not_be_longer_than_what_the_weights_read(given: Project) -> None:
    _start_from(given, "bert", BERT)
    _run(given, "sources.sample", "sources.model", "tokenize")
    given.set("pretrain.block_size", 65)
    said = "params.yaml: pretrain.block_size: 65 is not allowed; expected at most the longest input of data/model (64)"
    assert given.stage("pretrain", code=2).stderr.splitlines() == [f"error: {said}"]
