"""Stages killed at random moments and run again: do they end with the bytes of a run that nothing disturbed?

Pretraining and fine-tuning, in one process, two and three, on a toy of the project; every trial starts anew, is killed
with all its processes (SIGKILL) at a moment drawn evenly from the length of the whole run, and is then run to its
end. States are saved every quarter of a second.

Last result: 20 of 20 kills with one process and two, and 8 of 8 with three, ended in the same bytes.

    python benchmarks/interruptions.py
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from hashlib import sha256
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from own import TORCHRUN  # noqa: E402

from tests.toy import Project, copy_project  # noqa: E402

STAGES = {"pretraining": ["-m", "stages.pretrain"], "fine-tuning": ["-m", "stages.finetune_squad", "--method", "full"]}
LAUNCHERS = {1: [], 2: [*TORCHRUN, "2"], 3: [*TORCHRUN, "3"]}  # by number of processes
RESULT = ROOT / "benchmarks" / "interruptions.json"
OUTPUTS = ("models/pretrained", "models/squad", "predictions", "reports/curves")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20, help="of each number of processes")
    parser.add_argument("--processes", type=int, nargs="+", choices=LAUNCHERS, default=[*LAUNCHERS])
    parser.add_argument("--seed", type=int, default=1, help="draws the moments")
    arguments = parser.parse_args()
    moments, result = random.Random(arguments.seed), json.loads(RESULT.read_text())
    cases = [(stage, processes) for stage in STAGES for processes in arguments.processes]
    with tempfile.TemporaryDirectory() as folder:
        project = copy_project(Path(folder) / "project")
        project.set("pretrain.epochs", 6)
        project.set("squad.epochs", 4)
        for command in (["sources.sample"], ["sources.model"], ["tokenize"], ["pretrain"]):
            project.stage(*command)
        for stage, processes in cases:
            command = [sys.executable, *LAUNCHERS[processes], *STAGES[stage]]
            command += ["--seed", "1"] if stage == "fine-tuning" else []
            result[f"{stage}, {processes} processes"] = trials(
                project, command, arguments.kills // len(STAGES), moments
            )
    RESULT.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


def trials(project: Project, command: list[str], count: int, moments: random.Random) -> dict[str, int]:
    """How many of the kills left a checkpoint to go on from, and how many gave the same bytes."""
    whole, seconds = finished(project, command)
    found = {"kills": count, "went_on": 0, "same_bytes": 0}
    for _ in range(count):
        shutil.rmtree(project.folder / ".retrace", ignore_errors=True)
        killed(project, command, moments.uniform(0, seconds))
        found["went_on"] += any((project.folder / ".retrace" / "states").glob("*/0*"))
        found["same_bytes"] += finished(project, command)[0] == whole
    return found


def finished(project: Project, command: list[str]) -> tuple[str, float]:
    """A digest of what a run to its end wrote, and its seconds."""
    began = time.monotonic()
    subprocess.run(command, cwd=project.folder, env=environment(project), check=True, stdout=subprocess.DEVNULL)
    seconds, digest = time.monotonic() - began, sha256()
    for path in sorted(p for name in OUTPUTS for p in (project.folder / name).rglob("*") if p.is_file()):
        digest.update(str(path).encode() + path.read_bytes())
    return digest.hexdigest(), seconds


def killed(project: Project, command: list[str], seconds: float) -> None:
    """Start a run and kill it and its children after so many seconds."""
    run = subprocess.Popen(
        command, cwd=project.folder, env=environment(project), start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        run.wait(seconds)
    except subprocess.TimeoutExpired:
        stage = [
            psutil.Process(run.pid),
            *psutil.Process(run.pid).children(recursive=True),
        ]  # workers lead their groups
        for process in stage:
            process.kill()
        psutil.wait_procs(stage)


def environment(project: Project) -> dict[str, str]:
    """On processors, with a state every quarter of a second."""
    return {
        **os.environ, "PYTHONPATH": str(project.folder), "ACCELERATE_USE_CPU": "1", "RETRACE_SAVE_SECONDS": "0.25"
    }  # fmt: skip


if __name__ == "__main__":
    main()
