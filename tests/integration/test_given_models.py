"""Starting from given weights: every stage after it, for models in the layouts that the families were published in."""

import json

import pytest
import torch
from safetensors.torch import load_file

from retrace.hub.pins import folder_digest
from retrace.tokens.tokenizer import TOKENIZER_FILES
from tests.hub.content.models import BERT, LLAMA, MODERNBERT, ROBERTA, published_models, write_model
from tests.toy import Project

UNUSED = {"hidden_size": 8, "layers": 1, "heads": 1, "intermediate_size": 8, "max_positions": 8}  # not the model's


@pytest.fixture
def given(project: Project) -> Project:
    """A project that is told to pass weights on as they are."""
    unused = {f"model.{key}": value for key, value in UNUSED.items()}
    project.set_all({**unused, "pretrain.epochs": 0, "squad.max_length": 64, "metrics.bootstrap_samples": 200})
    return project


def _start_from(project: Project, family: str, name: str) -> dict[str, bytes]:
    """Put a published model into the project's folder `weights` and pin it."""
    folder = write_model(project.folder / "weights", name)
    project.set_all({"family": family, "model.checkpoint": f"weights@{folder_digest(folder)}"})
    return published_models()[name]


def _run(project: Project, *stages: str) -> None:
    for stage in stages:
        project.stage(*stage.split())


def _weights(project: Project) -> list[dict[str, torch.Tensor]]:
    """After pretraining and as they were given."""
    return [load_file(project.folder / name / "model.safetensors") for name in ("models/pretrained", "weights")]


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
    weights, before = _weights(given)
    assert weights.keys() == before.keys()
    assert all(torch.equal(weight, before[key].float()) for key, weight in weights.items())
    assert json.loads((pretrained / "config.json").read_text())["dtype"] == "float32"
    ((epoch, _, training, _, perplexity),) = _curve(given)
    assert (epoch, training, float(perplexity) > 1) == ("0", "", True)
    assert ("causal" if family == "llama" else "pseudo") in (given.folder / "reports/perplexity.json").read_text()

    cell = f"--method {method} --seed 1"
    _run(given, f"finetune_sst2 {cell}", f"finetune_squad {cell}")
    if family == "llama":
        given.set_all({"squad.answers": "generative", "squad.max_answer_length": 8})
        _run(given, f"finetune_squad {cell}")
    for folder in (pretrained, given.folder / f"models/sst2/{method}/1", given.folder / f"models/squad/{method}/1"):
        for file in published.keys() & set(TOKENIZER_FILES):
            assert (folder / file).read_bytes() == published[file]

    _run(given, "evaluate", "report")
    report = (given.folder / "reports/report.md").read_text()
    checkpoint = given.params()["model"]["checkpoint"]
    assert ("causal, sliding windows" in report) == (family == "llama")
    assert f"Training started from the weights of {checkpoint}." in report
    assert f"| model.checkpoint | {checkpoint} |" in report


@pytest.mark.parametrize(("family", "name"), [("bert", BERT), ("llama", LLAMA)])
def test_given_weights_are_trained_on(given: Project, family: str, name: str) -> None:
    """In blocks that are not longer than what they read."""
    _start_from(given, family, name)
    given.set_all({"pretrain.epochs": 2, "pretrain.next_sentence": family == "bert", "pretrain.block_size": 65})
    _run(given, "sources.sample", "sources.model", "tokenize")
    said = "params.yaml: pretrain.block_size: 65 is not allowed; the model in data/model reads at most 64 tokens"
    assert given.stage("pretrain", code=2).stderr == f"error: {said}\n"
    given.set("pretrain.block_size", 64)
    _run(given, "pretrain")
    curve = _curve(given)
    assert [row[0] for row in curve] == ["0", "1", "2"]
    assert float(curve[2][3]) < float(curve[0][3])
    assert family != "bert" or all(0 <= float(row[-1]) <= 1 for row in curve)  # how often the next sentence is known
    weights, before = _weights(given)
    assert weights.keys() == before.keys()
    moved = {key for key, weight in weights.items() if not torch.equal(weight, before[key].float())}
    assert moved >= {key for key, weight in weights.items() if ".layer" in key and weight.ndim == 2} != set()
