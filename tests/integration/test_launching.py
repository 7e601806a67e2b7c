"""The configurations of launch/, as Accelerate starts them: with gloo on processors, where NCCL would be on GPUs."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from accelerate.utils.other import get_free_port
from safetensors.torch import load_file

from tests import warm
from tests.toy import Project

LAUNCH = ("--quiet", "--num_processes", "2")
# One pair of machines is started as users do; the others by tests/warm.py.
NODES = ("env", "ACCELERATE_USE_CPU=1", "accelerate", "launch", *LAUNCH, "--config_file", "launch/nodes.yaml",
         "--main_process_ip", "127.0.0.1")  # fmt: skip


def _launch(project: Project, name: str, stage: str, *arguments: str) -> str:
    """Start a stage with the configuration of this name; returns what it printed."""
    config = ("--config_file", f"launch/{name}.yaml", "--main_process_port", "0")  # any that is free
    launcher = ("-m", "accelerate.commands.launch", *LAUNCH, *config, "--no_python")
    started = project.with_variables(ACCELERATE_USE_CPU="1")
    return started.run(*warm.COMMAND, *launcher, *warm.COMMAND, "-m", f"stages.{stage}", *arguments).stdout


def _assert_alike(one: Path, two: Path) -> None:
    """The same files, and weights of the same names and shapes that differ by rounding."""
    assert sorted(path.name for path in one.iterdir()) == sorted(path.name for path in two.iterdir())
    mine, theirs = (load_file(next(folder.glob("*.safetensors"))) for folder in (one, two))
    assert {name: weight.shape for name, weight in mine.items()} == {n: w.shape for n, w in theirs.items()}
    # The bias of span scores shifts all of them alike, which softmax ignores: its gradient is noise.
    far = [n for n, weight in mine.items() if (theirs[n] - weight).abs().mean() > 1e-3 and n != "body.classifier.bias"]
    assert far == []
    for name in ("config.json", "tokenizer.json"):
        assert not (one / name).exists() or (one / name).read_bytes() == (two / name).read_bytes()


def test_two_processes_pretrain_a_model_that_they_share_and_measure_it_as_one(ready: Project) -> None:
    ready.set_all({"precision": "fp32", "pretrain.optimizer.kind": "adamw"})
    models, curve = ready.folder / "models", ready.folder / "reports/curves/pretrain/epochs.csv"
    ready.stage("pretrain")
    one = curve.read_text()
    (models / "pretrained").rename(models / "alone")
    _launch(ready, "fsdp", "pretrain")
    assert json.loads((ready.folder / "reports/runs/pretrain.json").read_text())["processes"] == 2
    for mine, theirs in zip(one.splitlines()[1:], curve.read_text().splitlines()[1:], strict=True):
        assert float(mine.split(",")[3]) == pytest.approx(float(theirs.split(",")[3]), rel=1e-5)
    _assert_alike(models / "alone", models / "pretrained")

    ready.stage("perplexity_eval")
    report = ready.folder / "reports/perplexity-details.json"
    one = json.loads(report.read_text())["valid"]
    written = []
    for _ in range(2):
        assert _launch(ready, "fsdp", "perplexity_eval").count("valid: ") == 1
        written.append(report.read_bytes())
    assert written[0] == written[1]
    two = json.loads(written[0])["valid"]
    for name in ("masked", "pseudo", "unigram"):
        one_interval, two_interval = one[name].pop("intervals"), two[name].pop("intervals")
        assert two[name] == pytest.approx(one[name], rel=2e-5)
        assert all(two_interval[unit] == pytest.approx(one_interval[unit], rel=2e-5) for unit in one[name])


def test_two_processes_fine_tune_a_model_that_they_share(ready: Project) -> None:
    ready.set_all({
        "precision": "fp32", "sst2.optimizer.kind": "adamw", "squad.optimizer.kind": "adamw",
        "squad.question_match": True,
    })  # fmt: skip
    ready.stage("pretrain")
    for task, method in (("sst2", "full"), ("sst2", "lora"), ("squad", "adapter"), ("squad", "frozen")):
        stage, cell = (f"finetune_{task}", "--method", method, "--seed", "1"), f"{task}/{method}/1"
        weights, losses = ready.folder / "models" / cell, ready.folder / "predictions" / cell / "losses.json"
        ready.stage(*stage)
        weights.rename(weights.with_name("alone"))
        one = json.loads(losses.read_text())
        _launch(ready, "fsdp", *stage)
        for mine, theirs in zip(one, json.loads(losses.read_text()), strict=True):
            assert mine["validation_loss"] == pytest.approx(theirs["validation_loss"], rel=1e-5)
        _assert_alike(weights.with_name("alone"), weights)


@pytest.mark.thorough
def test_two_machines_give_what_one_gives(ready: Project) -> None:
    """Two launchers on loopback that meet as two machines would."""
    ready.set("precision", "fp32")
    _launch(ready, "gpus", "pretrain")
    weights = ready.folder / "models/pretrained/model.safetensors"
    before = weights.read_bytes()
    environment = {**os.environ, "PYTHONPATH": str(ready.folder), "RETRACE_THREADS": "1"}
    machines, port = [], str(get_free_port())
    for rank in "01":
        command = [*NODES, "--main_process_port", port, "--machine_rank", rank, "-m", "stages.pretrain"]
        machines.append(subprocess.Popen(command, cwd=ready.folder, env=environment, stdout=-3, stderr=-3))
    assert [machine.wait(timeout=180) for machine in machines] == [0, 0]
    assert weights.read_bytes() == before
    assert json.loads((ready.folder / "reports/runs/pretrain.json").read_text())["processes"] == 2
