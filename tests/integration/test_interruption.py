"""A stage that is killed leaves nothing that a later stage would read, and its rerun gives the same bytes."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.toy import Project

pytestmark = pytest.mark.slow


def _weights(project: Project) -> bytes:
    return (project.folder / "models/pretrained/model.safetensors").read_bytes()


def test_killed_pretraining_leaves_nothing_and_reruns_to_the_same_weights(project: Project) -> None:
    project.stage("sources.sample")
    project.stage("tokenize")
    project.stage("pretrain")
    whole, curve = _weights(project), (project.folder / "reports/curves/pretrain.csv").read_text()
    for path in ("models/pretrained/model.safetensors", "reports/curves/pretrain.csv"):
        (project.folder / path).unlink()
    environment = {**os.environ, "PYTHONPATH": str(project.folder)}
    with subprocess.Popen(
        [sys.executable, "-m", "stages.pretrain"], cwd=project.folder, env=environment, stdout=-1, text=True
    ) as stage:
        assert stage.stdout is not None
        assert "epoch 0" in stage.stdout.readline()
        stage.send_signal(signal.SIGKILL)
    assert stage.returncode == -signal.SIGKILL
    assert not (project.folder / "models/pretrained/model.safetensors").exists()
    assert not (project.folder / "reports/curves/pretrain.csv").exists()
    project.stage("pretrain")
    assert _weights(project) == whole
    assert (project.folder / "reports/curves/pretrain.csv").read_text() == curve
    assert not list(Path(project.folder).rglob("*.partial"))


def test_two_processes_agree_with_one(project: Project) -> None:
    """torchrun over gloo: the global batch and the schedule do not depend on the number of processes."""
    project.set("precision", "fp32")
    project.stage("sources.sample")
    project.stage("tokenize")
    project.stage("pretrain")
    one = (project.folder / "reports/curves/pretrain.csv").read_text()
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_port", "29611"]
    project.run("env", "ACCELERATE_USE_CPU=1", *torchrun, "-m", "stages.pretrain")
    two = (project.folder / "reports/curves/pretrain.csv").read_text()
    for mine, theirs in zip(one.splitlines()[1:], two.splitlines()[1:], strict=True):
        assert float(mine.split(",")[2]) == pytest.approx(float(theirs.split(",")[2]), rel=1e-3)
