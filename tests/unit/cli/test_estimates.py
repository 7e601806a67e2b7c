"""`retrace parameters`, `memory` and `plan`."""

import re
from pathlib import Path

import pytest
from transformers import LlamaConfig

from retrace.core.settings import plugin_names
from retrace.hub.pins import folder_digest
from retrace.models.settings import FAMILIES, constants_of
from tests.commands import Done, refused, retrace
from tests.tiny import tiny_pretrained
from tests.toy import ROOT, TOY, copy_settings


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def _lines(done: Done) -> list[list[str]]:
    assert done.code == 0, done.err
    return [line.split() for line in done.out.splitlines()]


def _totals(done: Done) -> dict[str, str]:
    """The numbers below the table, by what they are; of rows of one name the first."""
    return {" ".join(line[:-1]): line[-1] for line in reversed(_lines(done)) if line}


def test_a_plan_says_what_each_number_of_devices_takes(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy_settings(here).set("model.layers", 1)
    options = ("--tokens", "1e9", "--teraflops", "1", "--utilization", "0.5", "1", "8")
    model, assumed, disk, header, *rows, note = retrace("plan", *options, "64").out.splitlines()
    assert re.fullmatch(r"modernbert: [\d,]+ parameters, 0\.\d+ GFLOP a token; .*, 488,282 steps", model)
    assert assumed == "assumed: a peak of 1 TFLOP/s per device in bf16, 50% MFU"
    assert re.fullmatch(r"disk: 2 × [\d.]+ MiB of weights, 3 × [\d.]+ MiB of checkpoints", disk)
    assert header.split() == ["devices", "blocks", "each", "memory", "each", "time"]
    assert [row.split()[0] for row in rows] == ["1", "8", "64"]
    assert "64 (48 idle)" in rows[2], "a step has 16 blocks"
    assert re.match(r"note: a step of 0\.\d+ ms is shorter than a host takes to start its kernels", note)
    uneven = retrace("plan", "--tokens", "1e9", "--batch", "9", "5", "8").out.splitlines()[4:]
    assert uneven[0].split()[1:] == uneven[1].split()[1:], "of 9 blocks one device gets 2, with 5 devices and with 8"
    shared = [line.split() for line in retrace("plan", *options, "--sharded").out.splitlines()[4:]]
    assert shared[0] == rows[0].split()
    assert shared[1] != rows[1].split()
    for name, value in (("RETRACE_MICRO_BATCH", "4"), ("RETRACE_ACTIVATION_CHECKPOINTING", "true")):
        with monkeypatch.context() as alone:
            alone.setenv(name, value)
            assert retrace("plan", *options).out.splitlines()[4].split() != rows[0].split(), name


def test_a_plan_counts_the_head_for_pairs(here: Path) -> None:
    project, plan = copy_settings(here), ("plan", "--tokens", "1e9", "1")
    sizes = {f"model.{key}": value for key, value in TOY["model"].items()}
    project.set_all({"family": "bert", "model.rope_theta": None, "pretrain.block_size": 64, **sizes})
    without = retrace(*plan).out.split()[1].replace(",", "")
    project.set("pretrain.next_sentence", True)
    size = TOY["model"]["hidden_size"]
    more = size * size + size + 2 * size + 2  # the pooler, and scores of two classes
    assert f" {int(without) + more:,} parameters" in retrace(*plan).out


def test_the_model_of_params_is_its_checkpoint_where_it_has_one(here: Path) -> None:
    project = copy_settings(here)
    project.set_all({"family": "bert", "model.checkpoint": "google-bert/bert-base-uncased@" + "1" * 40})
    assert _totals(retrace("parameters"))["Total"] == "109,482,240"
    project.set("model.checkpoint", "org/unknown@" + "1" * 40)
    said = "its sizes are not known before it is fetched; run dvc repro data/dvc.yaml:model"
    assert refused("parameters") == f"error: params.yaml: model.checkpoint: {said}\n"
    folder = tiny_pretrained(Path("own"), "bert")
    project.set("model.checkpoint", f"own@{folder_digest(folder)}")
    assert _totals(retrace("parameters")) == _totals(retrace("parameters", "own"))


def test_parameters_are_counted_beside_the_formula_and_published_counts() -> None:
    done = retrace("parameters", "bert-base")
    found, same = _totals(done), ("Total", "Trainable", "By the formula of the architecture")
    assert [found[name] for name in same] == ["109,482,240"] * 3
    rows = [line[1].replace(",", "") for line in _lines(done) if len(line) == 3 and "." in line[0]]
    assert sum(map(int, rows)) == 109_482_240
    assert "difference of the model" not in done.out
    assert [line[-1] for line in _lines(done) if line[:1] == ["Published"]] == ["110,000,000", "108,432,384"]


def test_a_table_of_parameters_has_a_row_for_each_or_for_each_layer() -> None:
    first, *rest = _lines(retrace("parameters", "roberta-small"))
    assert first == ["Parameter", "Size", "Trained"]
    assert ["encoder.layer.3.output.dense.weight", "262,144", "262,144"] in rest
    assert ["difference", "of", "the", "model:", "embeddings.token_type_embeddings", "+512"] in rest
    options = ("--by", "layer", "--method", "frozen", "--head", "qa")
    found = _totals(retrace("parameters", "roberta-small", *options))
    row = ("roberta.encoder.layer.3 1,577,984", "0")
    assert found.items() >= {row, ("Frozen", "22,829,568"), ("Head biases", "2")}


def test_the_model_of_params_yaml_is_counted_with_the_settings_of_a_method_for_the_task() -> None:
    attention = 4 * ((128 + 384) + (128 + 128))  # two matrices of four layers
    classes = 128 * 128 + 128 + 128 * 2 + 2  # dense, norm, classes
    for head, products in (("classification", 15 * (attention + 3072 + 128)), ("qa", 32 * attention)):
        found = _totals(retrace("parameters", "--head", head, "--method", "lora"))
        assert found["Trainable"] == f"{classes + products:,}"


def test_memory_is_estimated_with_the_optimizer_of_the_method(here: Path) -> None:
    copy_settings(here).set("methods.adapter.optimizer", "adamw")
    shown = retrace("memory", "--batch", "4", "--length", "32", "--method", "adapter").out
    assert re.search(r"^4 × 32 tokens.*adamw, lean attention$", shown, re.MULTILINE)


def test_the_model_of_a_method_is_the_checkpoint_that_it_starts_from(here: Path) -> None:
    project = copy_settings(here)
    pin = "google-bert/bert-base-uncased@" + "1" * 40
    project.set_all({"checkpoints": {"own": {"family": "bert", "checkpoint": pin}}, "methods.full.checkpoint": "own"})
    assert _totals(retrace("parameters", "--method", "full"))["Total"] == "109,482,240"
    assert retrace("memory", "--batch", "1", "--length", "8").out.startswith("own, classification, full: 109,483,778 ")
    assert _totals(retrace("parameters", "--method", "scratch"))["Total"] != "109,482,240"
    project.set("checkpoints.own.checkpoint", "org/unknown@" + "1" * 40)
    said = "its sizes are not known before it is fetched; run dvc repro data/dvc.yaml:checkpoints@own"
    assert refused("parameters") == f"error: data/params.yaml: checkpoints.own: {said}\n"


def test_memory_says_that_rdrop_reads_each_example_twice(here: Path) -> None:
    copy_settings(here).set_all({"sst2.dropout": 0.1, "sst2.rdrop": 1.0})
    shown = retrace("memory", "--batch", "4", "--length", "32").out
    assert re.search(r"^4 × 32 tokens.* attention, 2 copies of each example \(R-Drop\)$", shown, re.MULTILINE)


def test_memory_names_the_tasks_dropout_where_the_model_can_have_none(here: Path) -> None:
    copy_settings(here).set("sst2.dropout", 0.3)
    said = "sst2.dropout: 0.3 is not allowed with family: llama, which has no dropout layer"
    assert refused("memory", "llama-3.2-1b", "--batch", "1", "--length", "8") == f"error: params.yaml: {said}\n"


def test_memory_needs_no_padding_token(here: Path) -> None:
    copy_settings(here)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    LlamaConfig.from_dict({**sizes, "vocab_size": 120}).save_pretrained(here)
    done = retrace("memory", ".", "--batch", "2", "--length", "8")
    assert "muon" in done.out, done


def test_memory_of_generated_answers_is_that_of_a_language_model(here: Path) -> None:
    project, counts = copy_settings(here), []
    for answers, head in (("generative", "qa"), ("generative", "lm"), ("extractive", "qa")):
        project.set_all({"family": "llama", "model.rope_theta": None, "squad.answers": answers})
        said = retrace("memory", "--batch", "2", "--length", "32", "--head", head).out
        counts.append(re.findall(r"([\d,]+) parameters", said))
    assert counts[0] == counts[1] != counts[2]
    project.set("squad.answers", "generative")
    causal = [name for name in plugin_names(FAMILIES) if constants_of(name)["OBJECTIVE"] == "causal"]
    refusal = "error: params.yaml: squad.answers: generative is not allowed with family: bert"
    said = f"{refusal}; expected one of {', '.join(causal)}\n"
    assert refused("memory", "bert-base", "--batch", "2", "--length", "32", "--head", "qa") == said


def test_memory_of_pretraining_counts_the_mask_that_keeps_attention_within_documents(here: Path, monkeypatch) -> None:
    monkeypatch.setattr("retrace.compute.device.attention_of", lambda device: "sdpa")  # keeps masks, as on GPUs
    project, found = copy_settings(here), []
    project.set_all({"family": "llama", "model.rope_theta": None, "model.layers": 1})
    for within in (False, True):
        project.set("pretrain.intra_document_attention", within)
        done = retrace("memory", "--batch", "16", "--length", "256", "--head", "lm")
        activations = r"^activations and temporary buffers, at most +(\d+) MiB"
        found += re.findall(activations, done.out, re.MULTILINE)
    assert int(found[1]) > int(found[0]), found


def test_no_methods_at_all_are_refused_in_one_line(here: Path) -> None:
    copy_settings(here).set("methods", None)
    assert refused("parameters") == "error: params.yaml: methods: null is not allowed; expected a mapping\n"


WRONG = [
    ("parameters bert-huge", "error: bert-huge: neither a folder nor one of the architectures bert-base, "),
    ("memory bert-base --batch 0 --length 8", "Invalid value for '--batch': "),
    ("memory bert-base --batch 1 --length 0", "Invalid value for '--length': "),
    ("memory bert-base --batch 1 --length 1000", "--length: 1000 is not allowed; the model reads at most 512 tokens"),
    ("memory bert-base --batch 1 --length 8 --method l", "--method: 'l' is not allowed; expected one of adapter, "),
    ("plan --tokens 0", "Invalid value for '--tokens': "),
    ("plan --tokens 1 1 0", "Invalid value for 'devices': "),
    ("plan --tokens 1 --utilization 0", "Invalid value for '--utilization': "),
    ("plan --tokens 1 --teraflops inf", "Invalid value for '--teraflops': "),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_what_is_wrong_with_an_argument_is_said(arguments: str, message: str) -> None:
    done = retrace(*arguments.split())
    assert (done.code, done.out) == (2, "")
    assert message in done.err


@pytest.mark.parametrize(
    ("precision", "said"), [("auto", "989 TFLOP/s per device in bf16"), ("fp32", "67 TFLOP/s per device in fp32")]
)
def test_the_peak_is_that_of_the_precision(here: Path, precision: str, said: str) -> None:
    copy_settings(here).set_all({"model.layers": 1, "precision": precision})
    assert f"assumed: a peak of {said}, " in retrace("plan", "--tokens", "1e9", "1").out
