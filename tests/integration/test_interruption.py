"""A stage that is killed leaves nothing that a later stage would read, and its rerun gives the same bytes."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
import pytest

from retrace.core.guard import holder
from tests import warm
from tests.commands import write_program
from tests.toy import Project

ALONE: list[str] = []  # before a stage's command: nothing
TORCHRUN = [*warm.COMMAND, "-m", "torch.distributed.run", "--standalone", "--no-python", "--nproc_per_node"]
TWO, THREE, FOUR = ([*TORCHRUN, count] for count in "234")  # two add their gradients in one order only
ON_CPU = {"ACCELERATE_USE_CPU": "1"}
SHARDED = {**ON_CPU, "ACCELERATE_USE_FSDP": "true"}
PRETRAIN = [*warm.COMMAND, "-m", "stages.pretrain"]
SQUAD = [*warm.COMMAND, "-m", "stages.finetune_squad", "--method", "full", "--seed", "1"]


def _outputs(project: Project) -> dict[str, bytes]:
    patterns = ("models/**/*.safetensors", "predictions/**/*", "reports/curves/*")
    files = (file for pattern in patterns for file in project.folder.glob(pattern) if file.is_file())
    return {str(file): file.read_bytes() for file in files}


def _states(project: Project) -> list[Path]:
    return sorted(path for path in project.folder.glob(".retrace/states/*/*") if path.name.isdigit())


def _killed_after(project: Project, steps: int, command: list[str]) -> None:
    """Run a command and kill it and the stage's processes, as a power cut would, once this many steps are saved."""
    environment = {**project.variables, "PYTHONPATH": str(project.folder), "RETRACE_SAVE_SECONDS": "0"}
    with subprocess.Popen(command, cwd=project.folder, env=environment, stdout=-3, stderr=-3) as launcher:
        while not any(int(path.name) >= steps for path in _states(project)):
            assert launcher.poll() is None, "it ended before it was killed"
            time.sleep(0.005)
        # The stage's processes hold locks that name them.
        locks = [holder(path) for path in project.folder.glob(".retrace/locks/*.lock")]
        stage = [psutil.Process(lock.process) for lock in locks if lock and psutil.pid_exists(lock.process)]
        assert stage
        for process in [launcher, *stage]:
            process.kill()
        psutil.wait_procs(stage)


@pytest.mark.parametrize(
    ("launcher", "variables", "kills"),
    [
        (ALONE, ON_CPU, ((PRETRAIN, (1, 9)), (SQUAD, (2, 8)))),
        pytest.param(THREE, ON_CPU, ((PRETRAIN, (9,)), (SQUAD, (2,))), marks=pytest.mark.thorough),
        (TWO, SHARDED, ((PRETRAIN, (1,)), (SQUAD, (8,)))),
    ],
    ids=["one process", "three processes", "two that share"],
)
def test_killed_training_goes_on_to_the_same_bytes(ready: Project, launcher: list[str], variables, kills) -> None:
    ready.set("squad.epochs", 2)
    project = ready.with_variables(**variables)
    for stage, steps in kills:
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
        assert "resuming after step" in done.stdout
        assert {path: _outputs(project)[path] for path in whole} == whole
        assert not _states(project)
        assert not list(project.folder.rglob("*.partial"))


def test_one_process_then_two_then_four_train_on_the_same_examples(ready: Project) -> None:
    ready.set_all({"precision": "fp32", "model.dropout": 0.0})
    project = ready.with_variables(**ON_CPU, RETRACE_RESUME_ANYWHERE="true")
    curves = [project.folder / f"reports/curves/pretrain/{name}.csv" for name in ("epochs", "updates")]
    project.run(*PRETRAIN)
    whole = [pd.read_csv(curve) for curve in curves]
    for launcher, steps in ((ALONE, 2), (TWO, 6)):
        _killed_after(project, steps, [*launcher, *PRETRAIN])
    done = project.run(*FOUR, *PRETRAIN)
    assert re.search(r"resuming after step \d+, saved on .*, 2 × .*; this is .*, 4 × ", done.stdout)
    for curve, right in zip(curves, whole, strict=True):
        pd.testing.assert_frame_equal(pd.read_csv(curve), right, rtol=1e-3)
    assert not _states(project)


def test_a_slurm_job_saves_requeues_itself_and_goes_on(project: Project, tmp_path: Path) -> None:
    """The job script by itself, told by a signal that its time is up; `scontrol` only writes down what it is told."""
    project.run("git", "init", "-q")
    project.set("pretrain.epochs", 6)
    told = tmp_path / "told"
    write_program(tmp_path / "scontrol", f'echo "$@" >> {told}')
    path = f"{Path(sys.executable).parent}{os.pathsep}{tmp_path}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PYTHONPATH": str(project.folder), "PATH": path, "SLURM_JOB_ID": "7"}
    options: Any = {"args": ["bash", "launch/slurm.sh", "pretrain"], "cwd": project.folder, "text": True}
    hurried = {**environment, "RETRACE_SAVE_SECONDS": "0"}
    with subprocess.Popen(**options, env=hurried, stdout=-1, stderr=-1) as first:
        while not _states(project):
            assert first.poll() is None, "it ended before it was asked to stop"
            time.sleep(0.02)
        first.send_signal(signal.SIGUSR1)
        said, errors = first.communicate(timeout=120)
    assert first.returncode != 0
    assert re.search(r"pretrain-0: process \d+ was asked to stop", said)
    assert re.search(r"pretrain: asked to stop after step \d+; run it again to resume there\n", errors)
    assert told.read_text() == "requeue 7\n"
    again = subprocess.run(**options, env=environment, capture_output=True, timeout=240, check=True)
    assert "resuming after step" in again.stdout
    assert (project.folder / "models/pretrained/model.safetensors").is_file()
    assert told.read_text() == "requeue 7\n"
