"""A stage that is killed leaves nothing that a later stage would read, and its rerun gives the same bytes."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.toy import Project

pytestmark = pytest.mark.slow


TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_port", "29611"]
PYTHON = [sys.executable]
TWO = ["env", "ACCELERATE_USE_CPU=1", *TORCHRUN]
SHARDED = ["env", "ACCELERATE_USE_CPU=1", "ACCELERATE_USE_FSDP=true", *TORCHRUN]
PRETRAIN, SQUAD = ["-m", "stages.pretrain"], ["-m", "stages.finetune_squad", "--method", "full", "--seed", "1"]


def _outputs(project: Project) -> dict[str, bytes]:
    files = [*project.folder.glob("models/**/*.safetensors"), *project.folder.glob("predictions/**/*")]
    files += project.folder.glob("reports/curves/*")
    return {str(file): file.read_bytes() for file in files if file.is_file()}


def _states(project: Project) -> list[Path]:
    return sorted(path for path in project.folder.glob(".retrace/states/*/*") if path.name.isdigit())


def _killed_after(project: Project, steps: int, command: list[str]) -> None:
    """Run a command and kill it and its children, as a power cut would, once so many steps are saved."""
    environment = {**os.environ, "PYTHONPATH": str(project.folder), "RETRACE_SAVE_SECONDS": "0"}
    stage = subprocess.Popen(
        command, cwd=project.folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        while not any(int(path.name) >= steps for path in _states(project)):
            assert stage.poll() is None, "it ended before it was killed"
            time.sleep(0.005)
    finally:
        for process in [*psutil.Process(stage.pid).children(recursive=True), stage]:
            process.kill()
        stage.wait()


@pytest.mark.parametrize("launcher", [PYTHON, TWO, SHARDED], ids=["one process", "two processes", "two that share"])
def test_killed_training_goes_on_to_the_same_bytes(project: Project, launcher: list[str]) -> None:
    project.stage("sources.sample")
    project.stage("sources.model")
    project.stage("tokenize")
    project.set("squad.epochs", 2)
    for stage, steps in ((PRETRAIN, (1, 9)), (SQUAD, (2, 8))):
        before = _outputs(project).keys()
        project.run(*launcher, *stage)
        whole = {path: content for path, content in _outputs(project).items() if path not in before}
        assert whole
        assert not _states(project)
        for path in whole:
            Path(path).unlink()
        for count in steps:
            _killed_after(project, count, [*launcher, *stage])
            assert _states(project)
            assert not _outputs(project).keys() & whole.keys()
        done = project.run(*launcher, *stage)
        assert "going on after step" in done.stdout
        assert {path: _outputs(project)[path] for path in whole} == whole
        assert not _states(project)
        assert not list(project.folder.rglob("*.partial"))


def test_a_stage_that_is_asked_to_stop_says_that_it_goes_on(project: Project) -> None:
    project.stage("sources.sample")
    project.stage("sources.model")
    project.stage("tokenize")
    environment = {**os.environ, "PYTHONPATH": str(project.folder)}
    with subprocess.Popen(
        [*PYTHON, *PRETRAIN], cwd=project.folder, env=environment, text=True, stdout=-1, stderr=-1
    ) as stage:
        assert stage.stdout is not None
        assert "epoch 0" in stage.stdout.readline()
        stage.send_signal(signal.SIGTERM)
        _, errors = stage.communicate()
    assert stage.returncode == 75
    assert re.fullmatch(r"pretrain: asked to stop after step \d+; run it again to go on from there\n", errors)
    assert "going on after step" in project.stage("pretrain").stdout


def test_a_slurm_job_saves_requeues_itself_and_goes_on(project: Project, tmp_path: Path) -> None:
    """The job script by itself, told by a signal that its time is up; `scontrol` only writes down what it is told."""
    project.run("git", "init", "-q")
    told = tmp_path / "told"
    (tmp_path / "scontrol").write_text(f'#!/bin/sh\necho "$@" >> {told}\n')
    (tmp_path / "scontrol").chmod(0o755)
    path = f"{Path(sys.executable).parent}{os.pathsep}{tmp_path}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PYTHONPATH": str(project.folder), "PATH": path, "SLURM_JOB_ID": "7"}
    environment |= {"RETRACE_SAVE_SECONDS": "0"}
    project.set("pretrain.epochs", 30)
    job = ["bash", "launch/slurm.sh", "pretrain"]
    with subprocess.Popen(job, cwd=project.folder, env=environment, text=True, stdout=-1, stderr=-1) as first:
        while not _states(project):
            assert first.poll() is None, "it ended before it was asked to stop"
            time.sleep(0.02)
        first.send_signal(signal.SIGUSR1)
        said, errors = first.communicate(timeout=120)
    assert first.returncode != 0
    assert re.search(r"pretrain-0: process \d+ was asked to stop", said)
    assert "run it again to go on from there" in errors
    assert told.read_text() == "requeue 7\n"
    again = subprocess.run(
        job, cwd=project.folder, env=environment, text=True, capture_output=True, timeout=240, check=True
    )
    assert "going on after step" in again.stdout
    assert (project.folder / "models/pretrained/model.safetensors").is_file()
    assert told.read_text() == "requeue 7\n"


def test_nobody_is_asked_to_stop_where_nothing_runs(project: Project) -> None:
    assert project.run("retrace", "stop").stdout == "nothing is running here\n"


def test_two_processes_agree_with_one(project: Project) -> None:
    """torchrun over gloo: the global batch and the schedule do not depend on the number of processes."""
    project.set("precision", "fp32")
    project.stage("sources.sample")
    project.stage("sources.model")
    project.stage("tokenize")
    project.stage("pretrain")
    one = (project.folder / "reports/curves/pretrain.csv").read_text()
    project.run(*TWO, *PRETRAIN)
    two = (project.folder / "reports/curves/pretrain.csv").read_text()
    for mine, theirs in zip(one.splitlines()[1:], two.splitlines()[1:], strict=True):
        assert float(mine.split(",")[2]) == pytest.approx(float(theirs.split(",")[2]), rel=1e-3)


def test_two_nodes_give_what_two_processes_give(project: Project) -> None:
    """Two `torchrun` on loopback that meet as two machines would."""
    project.stage("sources.sample")
    project.stage("sources.model")
    project.stage("tokenize")
    project.run(*TWO, *PRETRAIN)
    before = _outputs(project)
    environment = {**os.environ, "PYTHONPATH": str(project.folder), "ACCELERATE_USE_CPU": "1"}
    environment["RETRACE_THREADS"] = "1"  # as two processes on one machine have
    nodes = [
        subprocess.Popen(
            [*PYTHON, "-m", "torch.distributed.run", "--nnodes", "2", "--node_rank", str(rank), "--nproc_per_node", "1",
             "--master_addr", "127.0.0.1", "--master_port", "29613", *PRETRAIN],
            cwd=project.folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        for rank in (0, 1)
    ]  # fmt: skip
    assert [node.wait(timeout=180) for node in nodes] == [0, 0]
    assert _outputs(project) == before
    assert json.loads((project.folder / "reports/runs/pretrain.json").read_text())["processes"] == 2
