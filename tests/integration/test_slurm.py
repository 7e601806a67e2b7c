"""Slurm itself: its two daemons on this machine, for as long as the tests last."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.integration.test_spread import pipeline
from tests.toy import ROOT, Project

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun")
LACKING = os.getuid() != 0 or any(shutil.which(name) is None for name in PROGRAMS)
REASON = f"needs root and {', '.join(PROGRAMS)}: Debian's packages slurm-wlm and munge"
pytestmark = pytest.mark.skipif(LACKING, reason=REASON)
CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
NodeName=node[1-2] NodeHostname={host} NodeAddr=127.0.0.1 Port={ports} CPUs=2
PartitionName=all Nodes=ALL Default=YES State=UP
"""
CELL = """
import signal, sys, time
from pathlib import Path
number = sys.argv[1]
saved = Path("saved")
def save(*_):
    saved.touch()
    sys.exit(75)
if number == "2" and not saved.exists():
    signal.signal(signal.SIGTERM, save)
    Path("begun").touch()
    time.sleep(300)
if number == "3":
    sys.exit("error: lr: -1 is not allowed")
Path(f"out{number}").write_text("made")
"""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The variables of processes that are to use this Slurm, which has two nodes."""
    folder = tmp_path_factory.mktemp("slurm")
    below = folder.relative_to(tempfile.gettempdir())
    for above in (folder, *folder.parents[: len(below.parts) - 1]):
        above.chmod(0o755)  # munge's rule
    (folder / "state").mkdir()
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = min(free.getsockname()[1], 60_000)
    text = CONFIGURATION.format(folder=folder, host=socket.gethostname(), port=port, ports=f"[{port + 1}-{port + 2}]")
    (folder / "slurm.conf").write_text(text)
    variables = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf"), "PYTHONPATH": str(ROOT)}
    commands = [
        ["munged", "-F", f"--socket={folder}/munge.socket", f"--key-file={key}", f"--seed-file={folder}/seed",
         f"--pid-file={folder}/munge.pid"],
        ["slurmctld", "-D"],
        *(["slurmd", "-D", "-N", f"node{number}"] for number in (1, 2)),
    ]  # fmt: skip
    with ExitStack() as daemons:
        for number, command in enumerate(commands):
            log = daemons.enter_context((folder / f"{number}.log").open("w"))
            daemon = subprocess.Popen(["timeout", "900", *command], env=variables, stdout=log, stderr=log)
            daemons.callback(daemon.wait)
            daemons.callback(daemon.terminate)
            time.sleep(1)
        yield variables


def test_a_job_whose_time_is_up_saves_its_state_and_goes_on_in_its_next_turn(tmp_path: Path, slurm) -> None:
    project = pipeline(tmp_path / "project", CELL, 3, sys.executable)
    command = ["timeout", "240", sys.executable, "-m", "retrace.cli.main", "spread", "--slurm"]
    with subprocess.Popen(command, cwd=project.folder, env=slurm, stdout=-1, stderr=-1, text=True) as run:
        while not (project.folder / "begun").exists():
            assert run.poll() is None, run.communicate()
            time.sleep(0.1)
        jobs = subprocess.check_output(["squeue", "-hro%i"], env=slurm, text=True).split()
        second = ",".join(job for job in jobs if job.endswith("_1"))
        subprocess.run(["scancel", "--signal=USR2", second], env=slurm, check=True)  # as before the time limit
        out, err = run.communicate()
    assert (project.folder / "saved").exists()
    assert (project.folder / "out2").read_text() == "made"
    failed = "error: 1 of 4 stages failed:\n  cell@3: lr: -1 is not allowed (.retrace/spread/cell@3.log)\n"
    assert (run.returncode, failed in err) == (255, True)
    log = (project.folder / ".retrace/spread/cell@2.log").read_text()
    assert out.count("cell@2: queued") == 1, (out, log)
    assert out.count("cell@2: done") == 1


def test_a_job_of_two_nodes_runs_one_stage_on_both(project: Project, slurm: dict[str, str]) -> None:
    project.run("git", "init", "-q")
    project.run("dvc", "repro", "tokenize")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**slurm, "ACCELERATE_USE_CPU": "1", "PATH": path, "PYTHONPATH": str(project.folder)}
    job = ["timeout", "240", "sbatch", "--wait", "--nodes=2", "--output=log", "launch/slurm.sh", "-s", "pretrain"]
    code = subprocess.run(job, cwd=project.folder, env=environment, check=False).returncode
    assert code == 0, (project.folder / "log").read_text()
    record = json.loads((project.folder / "reports/runs/pretrain.json").read_text())
    assert record["processes"] == 2
    assert "pretrain:" in (project.folder / "dvc.lock").read_text()
