"""Training as jobs of Slurm that are asked to stop and put back into the queue: the bytes of a run that was left alone?

A toy project is trained three ways under a real Slurm with two nodes, both of which are this machine: all of it by
`launch/slurm.sh` on one node; pretraining by `launch/slurm.sh` on both, whose gradients go by gloo; and all of it by
`retrace spread --slurm`, each fine-tuning run a job of its own. Once training has saved a state, the job gets the
signal that Slurm sends before a time limit. It must go back into the queue by itself, go on from the state, and end
with the bytes of a run without Slurm or, for two nodes, of one that was not stopped.

    python -m tests.campaigns.slurm

Needs root and Debian's packages slurm-wlm and munge.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests import warm
from tests.campaigns.kills import RESULT, campaign_folder, digests, write
from tests.slurm import cluster
from tests.toy import Project, copy_project

TIMEOUT = 900.0  # seconds for a job, its second turn included
EPOCHS = 60  # of pretraining, for it to be stopped in
SUBMITTED = ("sbatch", "--parsable", "--output=log")
PRETRAINED = ("models/pretrained", "reports/curves")


def copied(whole: Path, folder: Path) -> Project:
    """A project of the same settings in which the data, the tokens and nothing else were made."""
    shutil.copytree(whole, folder, symlinks=True)
    return Project(folder)


def asked(project: Project, slurm: dict[str, str], job: str, of: str, signal: Sequence[str]) -> None:
    """Send a job the signal once a run whose name begins so has saved a state."""
    end = time.monotonic() + TIMEOUT
    while not any(project.folder.glob(f".retrace/states/{of}*/0*")):
        assert time.monotonic() < end, (project.folder / "log").read_text()
        time.sleep(0.05)
    subprocess.run(["scancel", *signal, job], env=slurm, check=True)


def ended(project: Project, slurm: dict[str, str], job: str) -> dict[str, str]:
    """What Slurm says of a job that has ended."""
    end = time.monotonic() + TIMEOUT
    while True:
        said = subprocess.run(["scontrol", "show", "job", job], env=slurm, check=True, capture_output=True, text=True)
        found = dict(part.split("=", 1) for part in said.stdout.split() if "=" in part)
        if found["JobState"] in ("COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL"):
            return found
        assert time.monotonic() < end, (found, (project.folder / "log").read_text())
        time.sleep(1)


def submitted(project: Project, slurm: dict[str, str], *arguments: str, stop: bool = True) -> dict[str, Any]:
    """Run a job of launch/slurm.sh and, with `stop`, ask it to stop in pretraining: how it went."""
    environment = {**slurm, "PYTHONPATH": str(project.folder)}
    command = [*SUBMITTED, *arguments]
    job = subprocess.run(
        command, cwd=project.folder, env=environment, check=True, capture_output=True, text=True
    ).stdout.strip()
    if stop:
        asked(project, slurm, job, "pretrain", ("--batch", "--signal=USR1"))
    found = ended(project, slurm, job)
    log = (project.folder / "log").read_text()
    print(log, flush=True)
    return {"state": found["JobState"], "requeued": int(found["Restarts"]), "resumed": log.count("resuming after step")}


def spread(project: Project, slurm: dict[str, str]) -> dict[str, Any]:
    """Run the pipeline by `retrace spread --slurm`, and stop the first fine-tuning run that has saved a state."""
    command = [sys.executable, "-m", "retrace.cli.main", "spread", "--slurm"]
    environment = {**slurm, "PYTHONPATH": str(project.folder)}
    with subprocess.Popen(command, cwd=project.folder, env=environment, stdout=-1, stderr=-2, text=True) as run:
        end = time.monotonic() + TIMEOUT
        while not (states := [*project.folder.glob(".retrace/states/s*/0*")]):
            assert run.poll() is None, run.communicate()
            assert time.monotonic() < end
            time.sleep(0.05)
        name = states[0].parent.name
        jobs = subprocess.run(["squeue", "-hrt", "R", "-o%i"], env=slurm, check=True, capture_output=True, text=True)
        for job in jobs.stdout.split():
            subprocess.run(["scancel", "--signal=USR2", job], env=slurm, check=True)
        said = run.communicate(timeout=TIMEOUT)[0]
    print(said, flush=True)
    logs = "".join(path.read_text() for path in project.folder.glob(".retrace/spread/*.log"))
    return {
        "code": run.returncode,
        "stopped": name.split(".")[0].rpartition("-")[0],
        "resumed": logs.count("resuming after step"),
    }


def main() -> None:
    os.environ |= {"RETRACE_THREADS": "1", "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "1"}
    os.environ["RETRACE_SAVE_SECONDS"] = "0.5"
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    found: dict[str, Any] = {}
    with campaign_folder() as folder:
        server = os.environ.pop(warm.VARIABLE)  # not for jobs
        (folder / "slurm").mkdir()
        whole = copy_project(folder / "whole", git=True).with_variables(**{warm.VARIABLE: server})
        whole.set_all({"finetune.methods": ["full"], "finetune.squad_methods": ["full"], "pretrain.epochs": EPOCHS})
        whole.set_all({"sst2.epochs": 10, "squad.epochs": 10})
        whole.commit("toy")
        whole.run("dvc", "repro", "tokenize")
        first, both, alone, cells = (copied(whole.folder, folder / name) for name in ("one", "two", "left", "cells"))
        whole.run("dvc", "repro")
        right = digests(whole.folder)
        with cluster(folder / "slurm") as slurm:
            found["one node"] = submitted(first, slurm, "launch/slurm.sh")
            found["one node"]["same"] = digests(first.folder) == right
            write(RESULT.with_name("slurm.json"), found)
            found["a job for each run"] = spread(cells, slurm)
            found["a job for each run"]["same"] = digests(cells.folder) == right
            write(RESULT.with_name("slurm.json"), found)
            two = ("--nodes=2", "launch/slurm.sh", "-s", "pretrain")
            left = submitted(alone, slurm, *two, stop=False)
            found["two nodes"] = submitted(both, slurm, *two)
            found["two nodes"]["same"] = left["state"] == "COMPLETED" and pretrained(both) == pretrained(alone)
            write(RESULT.with_name("slurm.json"), found)
    print(json.dumps(found))
    sys.exit(not all(each["same"] and each["resumed"] for each in found.values()))


def pretrained(project: Project) -> dict[str, str]:
    """SHA-256 of what pretraining wrote, but for its times; the pages of two nodes are not made."""
    found = digests(project.folder)
    return {name: digest for name, digest in found.items() if name.startswith(PRETRAINED)}


if __name__ == "__main__":
    main()
