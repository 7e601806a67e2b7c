"""`retrace spread` with cells that only lease GPUs which are not there, sleep, fail or wait to be stopped."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Any

import psutil
import pytest
from ruamel.yaml import YAML
from submitit.slurm.slurm import SlurmExecutor

from retrace.cli import spread
from retrace.core.environment import cores
from retrace.core.guard import running
from tests import warm
from tests.commands import pretend_gpus, retrace
from tests.toy import ROOT, Project

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what DVC uses

PIPELINE = """
stages:
  first: {{cmd: echo 1 > first, outs: [first]}}
  cell:
    matrix: {{n: {numbers}}}
    cmd: {python} -m cell ${{item.n}}
    deps: [first]
    outs: ["out${{item.n}}"]
  beside: {{cmd: echo 1 > beside, deps: [first], outs: [beside]}}
  last: {{cmd: cat out* > last, deps: [beside, {outs}], outs: [last]}}
"""
LEASES = """
import json, os, sys, time
from pathlib import Path
from retrace.compute.lease import lease_gpus
lease_gpus()
began = time.time()
time.sleep(SECONDS)
Path(f"out{sys.argv[1]}").write_text("made")
with open("times", "a") as file:
    print(json.dumps([os.environ["CUDA_VISIBLE_DEVICES"], began, time.time()]), file=file)
"""
STUMBLES = """
import os, signal, sys
from pathlib import Path
number, tries = sys.argv[1], Path(f"tries{sys.argv[1]}")
tries.write_text(tries.read_text() + "I" if tries.exists() else "I")
if number == "2" and tries.read_text() == "I":
    os.kill(os.getpid(), signal.SIGKILL)
if number == "3":
    sys.exit("error: lr: -1 is not allowed")
Path(f"out{number}").write_text(os.environ["RETRACE_THREADS"])
"""
WAITS = """
import signal, sys
from pathlib import Path
def save(*_):
    Path(f"saved{sys.argv[1]}").touch()
    sys.exit(75)
signal.signal(signal.SIGTERM, save)
Path(f"begun{sys.argv[1]}").touch()
signal.pause()
"""
GUARDED = """
import signal, sys
from pathlib import Path
from retrace.core.errors import exit_cleanly
from retrace.core.guard import guarded
def main():
    with guarded(f"cell-{sys.argv[1]}", [], {}), Path(f"tries{sys.argv[1]}").open("a") as tries:
        print("I", file=tries, flush=True)
        signal.pause()
exit_cleanly(main)
"""


def pipeline(folder: Path, cell: str, cells: int, python: str = " ".join(warm.COMMAND)) -> Project:
    """A DVC repository with this many cells of a matrix."""
    folder.mkdir()
    project = Project(folder)
    numbers = range(1, cells + 1)
    outs = ", ".join(f"out{number}" for number in numbers)
    (folder / "dvc.yaml").write_text(PIPELINE.format(python=python, numbers=list(numbers), outs=outs))
    (folder / "cell.py").write_text(cell)
    project.run("dvc", "init", "-q", "--no-scm")
    return project


def on_gpus(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, cells: int, seconds: int, gpus: int) -> Project:
    """The same in the current folder, of cells that hold one of so many GPUs for `seconds`."""
    project = pipeline(folder / name, LEASES.replace("SECONDS", str(seconds)), cells)
    for variable, value in pretend_gpus(folder / "gpus", gpus).items():
        monkeypatch.setenv(variable, value)
    monkeypatch.chdir(project.folder)
    return project


def times() -> list[list[Any]]:
    """The GPU of each cell that ran here, and when it had it."""
    return [json.loads(line) for line in Path("times").read_text().splitlines()]


def texts(pattern: str) -> dict[str, str]:
    return {path.name: path.read_text() for path in Path().glob(pattern)}


@pytest.fixture
def warm_dvc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spread, "DVC", (*warm.COMMAND, "-m", *spread.DVC[2:]))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


@pytest.mark.usefixtures("warm_dvc")
def test_cells_take_a_gpu_each_and_dvc_lock_is_as_of_a_serial_run(tmp_path: Path, monkeypatch) -> None:
    project = on_gpus(tmp_path, monkeypatch, "side by side", cells=6, seconds=5, gpus=4)
    done = retrace("spread")
    assert done.code == 0, done
    assert done.out.startswith("stages to run: 7, 4 at once; output in .retrace/spread\n")
    assert len(times()) == 6
    of_gpu = {gpu: sorted(each[1:] for each in times() if each[0] == gpu) for gpu, *_ in times()}
    assert of_gpu.keys() == {f"GPU-{number}" for number in range(4)}
    assert all(one[1] <= two[0] for each in of_gpu.values() for one, two in pairwise(each))
    assert max(map(len, of_gpu.values())) == 2  # two rounds

    serial = pipeline(tmp_path / "serial", LEASES.replace("SECONDS", "0"), 6)
    monkeypatch.setenv("RETRACE_SHARE_GPUS", "true")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    serial.run("dvc", "repro")
    written = (project.folder / "dvc.lock").read_text()
    assert written.replace("side by side", "serial") == (serial.folder / "dvc.lock").read_text()
    assert retrace("spread").out == ""


@pytest.mark.usefixtures("warm_dvc")
def test_a_killed_cell_is_started_again_and_a_failed_one_stops_no_other(tmp_path: Path, monkeypatch) -> None:
    project = pipeline(tmp_path / "project", STUMBLES, 4)
    monkeypatch.chdir(project.folder)
    monkeypatch.delenv("RETRACE_THREADS")
    done = retrace("spread", "-j", 2)
    assert done.code == 255
    assert "cell@2: failed, retrying\n" in done.out
    assert [line.partition(" ")[2] for line in done.out.splitlines() if line.endswith("failed")] == ["cell@3: failed"]
    assert done.err == "error: 1 of 5 stages failed:\n  cell@3: lr: -1 is not allowed (.retrace/spread/cell@3.log)\n"
    assert texts("tries*") == {"tries1": "I", "tries2": "II", "tries3": "II", "tries4": "I"}
    threads = max(1, cores() // 2)
    assert texts("out*") == {f"out{number}": str(threads) for number in (1, 2, 4)}
    assert not Path("last").exists()
    (project.folder / "cell.py").write_text(STUMBLES.replace('"3"', '"none"'))
    assert "stages to run: 1, 1 at once" in retrace("spread", "-j", 2).out
    assert Path("last").exists()


@pytest.mark.usefixtures("warm_dvc")
def test_without_slurm_its_jobs_are_processes_here_which_take_a_gpu_each(tmp_path: Path, monkeypatch) -> None:
    on_gpus(tmp_path, monkeypatch, "project", cells=3, seconds=2, gpus=2)
    monkeypatch.setattr(SlurmExecutor, "affinity", lambda: -1)  # where there is no `srun`
    done = retrace("spread", "--slurm")
    assert done.code == 0, done
    assert re.search(r"^job \d+: .retrace/spread/needed.log\nstages to run: 4, 4 at once;", done.out)
    assert {gpu for gpu, *_ in times()} == {"GPU-0", "GPU-1"}
    assert Path("last").read_text() == "made" * 3


@pytest.mark.parametrize("asked", [signal.SIGINT, signal.SIGHUP])
def test_cells_save_their_states_when_it_is_interrupted(tmp_path: Path, asked: signal.Signals) -> None:
    project = pipeline(tmp_path / "project", WAITS, 3, sys.executable)
    command = [sys.executable, "-m", "retrace.cli.main", "spread", "-j", "2"]
    options: Any = {"env": {**os.environ, "PYTHONPATH": str(ROOT)}, "stdout": -1, "stderr": -1, "text": True}

    def hear() -> None:
        signal.signal(asked, signal.SIG_DFL)  # which a shell's background job or `nohup` would ignore

    with subprocess.Popen(command, cwd=project.folder, preexec_fn=hear, **options) as run:
        while len(list(project.folder.glob("begun*"))) < 2:
            assert run.poll() is None, run.communicate()
            time.sleep(0.05)
        below = psutil.Process(run.pid).children(recursive=True)
        run.send_signal(asked)
        out, err = run.communicate(timeout=60)
    assert (run.returncode, err) == (75, "stopped; run it again to resume from the saved states\n")
    assert out.count(": stopped\n") == 2
    assert not any(process.is_running() for process in below)
    begun, saved = (sorted(path.name[-1] for path in project.folder.glob(f"{name}*")) for name in ("begun", "saved"))
    assert begun == saved


def test_retrace_stop_stops_it_too(tmp_path: Path) -> None:
    """It would start the cells again that were asked to stop, and those that wait."""
    project = pipeline(tmp_path / "project", GUARDED, 3, sys.executable)
    command = [sys.executable, "-m", "retrace.cli.main"]
    options: Any = {"cwd": project.folder, "env": {**os.environ, "PYTHONPATH": str(ROOT)}, "text": True}
    with subprocess.Popen([*command, "spread", "-j", "2"], stdout=-1, stderr=-1, **options) as run:
        try:
            while len(list(project.folder.glob("tries*"))) < 2:
                assert run.poll() is None, run.communicate()
                time.sleep(0.05)
            said = subprocess.check_output([*command, "stop"], **options)
            out, err = run.communicate(timeout=60)
        finally:
            run.terminate()
    assert f"spread: process {run.pid} was asked to stop\n" in said
    assert (run.returncode, err) == (75, "stopped; run it again to resume from the saved states\n")
    assert out.count(": stopped\n") == 2
    assert [path.read_text() for path in project.folder.glob("tries*")] == ["I\n"] * 2


@pytest.mark.usefixtures("warm_dvc")
def test_a_killed_cell_of_the_pipeline_goes_on_from_its_checkpoint_to_the_same_bytes(
    finished: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = finished.copy(tmp_path / "project")
    lock = project.folder / "dvc.lock"
    locked = YAML().load(lock)
    locked["stages"] = {name: locked["stages"][name] for name in ("tokenize", "pretrain")}  # the others have not run
    YAML().dump(locked, lock)
    for name in (".dvc/cache/runs", "models/sst2", "models/squad", "predictions"):
        shutil.rmtree(project.folder / name)
    (project.folder / "reports/metrics.json").unlink()
    for name, value in {"RETRACE_RUN": " ".join(warm.COMMAND), "RETRACE_SAVE_SECONDS": "0"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYTHONPATH", str(project.folder))
    monkeypatch.chdir(project.folder)

    def kill() -> None:
        while not any(path.name.isdigit() for path in Path().glob(".retrace/states/sst2.full.1*/*")):
            time.sleep(0.005)
        (stage,) = (found.process for found in running() if found.path.stem.startswith("sst2.full.1"))
        os.kill(stage, signal.SIGKILL)

    Thread(target=kill, daemon=True).start()
    done = retrace("spread", "-j", 2)
    assert done.code == 0, done
    assert "finetune-sst2@sst2-full-1: failed, retrying\n" in done.out
    assert "resuming after step" in Path(".retrace/spread/finetune-sst2@sst2-full-1.log").read_text()
    weights = sorted(path.relative_to(project.folder) for path in project.folder.rglob("models/**/*.safetensors"))
    assert len(weights) == 5
    assert all(path.read_bytes() == (finished.folder / path).read_bytes() for path in weights)
    assert Path("reports/metrics.json").read_bytes() == (finished.folder / "reports/metrics.json").read_bytes()
