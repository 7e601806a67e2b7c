"""The configurations of launch/, as Accelerate reads them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch.distributed.run
import yaml
from accelerate.commands.launch import launch_command, launch_command_parser

from retrace.core.files import write_text
from retrace.core.paths import LOCKFILES
from tests import warm
from tests.commands import write_program
from tests.toy import ROOT, Project


@pytest.mark.parametrize("name", ["gpus", "fsdp"])
def test_a_process_is_started_for_each_gpu(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Any] = []
    monkeypatch.setattr(torch.distributed.run, "run", started.append)
    monkeypatch.setattr("accelerate.commands.launch.check_cuda_p2p_ib_support", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 5)
    file = str(ROOT / "launch" / f"{name}.yaml")
    launch_command(launch_command_parser().parse_args(["--config_file", file, "-m", "stages.pretrain"]))
    (arguments,) = started
    assert torch.distributed.run.config_from_args(arguments)[0].nproc_per_node == 5


def two_processes(folder: Path, work: str, *options: str, python: Sequence[str] = (sys.executable,)) -> dict[str, Any]:
    """The arguments of subprocess that start a program twice on processors by launch/gpus.yaml.

    `python` may be that of tests/warm.py, which starts sooner, where no signal is sent.
    """
    text = (ROOT / "launch/gpus.yaml").read_text().replace("num_processes: gpu", "num_processes: 2")
    (folder / "two.yaml").write_text(text)
    (folder / "work.py").write_text(work)
    port = ("--main_process_port", "0")  # any that is free
    launcher = [*python, "-m", "retrace.compute.launch", "--config_file", "two.yaml", *port, *options, "--no_python"]
    environment = {"PYTHONPATH": str(ROOT), "ACCELERATE_USE_CPU": "1", "PATH": "", "RETRACE_THREADS": "1"}
    environment[warm.VARIABLE] = os.environ[warm.VARIABLE]
    return {"args": [*launcher, *python, "-m", "work"], "cwd": folder, "env": environment, "text": True}


@pytest.mark.parametrize(("ends", "code"), [("os.kill(os.getpid(), 9)", 137), ("os.kill(os.getpid(), 15)", 75)])
def test_the_launcher_ends_as_the_first_process_that_a_signal_ended(tmp_path: Path, ends: str, code: int) -> None:
    """A process's own exit code is that of the launcher in tests/unit/training/test_checkpoint.py."""
    work = f"import os, time\n{ends} if os.environ['RANK'] == '1' else time.sleep(60)\n"
    done = subprocess.run(**two_processes(tmp_path, work), capture_output=True, check=False)
    assert done.returncode == code, done.stderr
    assert "process 1 ended" in done.stderr.splitlines()[-1]


def test_the_launcher_ends_as_the_process_that_failed_and_not_as_one_that_lost_contact_with_it(tmp_path: Path) -> None:
    """Both end before it looks at them again."""
    work = "import os, sys\nsys.exit(2 if os.environ['RANK'] == '1' else 75)\n"
    started = two_processes(tmp_path, work, "--monitor_interval", "3")
    done = subprocess.run(**started, capture_output=True, check=False)
    assert (done.returncode, done.stderr.splitlines()[-1][:9]) == (2, "process 1"), done.stderr


def test_the_launcher_waits_for_its_processes_however_often_it_is_asked_to_stop(tmp_path: Path) -> None:
    """`retrace stop` asks it once for each process, and launch/slurm.sh does so every five seconds."""
    work = (
        "import os, signal, time\nasked = []\nsignal.signal(signal.SIGTERM, lambda *_: asked.append(1))\n"
        "os.write(1, b'ready\\n')\nwhile not asked:\n    time.sleep(0.1)\n"
        "time.sleep(3)\nos.write(1, b'saved\\n')\nos._exit(75)\n"
    )
    out = tmp_path / "out"
    with out.open("w") as file, subprocess.Popen(**two_processes(tmp_path, work), stdout=file) as run:
        while out.read_text().count("ready") < 2:
            assert run.poll() is None
            time.sleep(0.1)
        for _ in range(4):
            run.send_signal(signal.SIGTERM)
            time.sleep(0.2)
        assert run.wait(60) == 75
        assert out.read_text().count("saved") == 2


def test_a_launch_under_nohup_goes_on_when_the_terminal_is_closed(tmp_path: Path) -> None:
    started = two_processes(tmp_path, "import os, time\nos.write(1, b'ready\\n')\ntime.sleep(2)\n")
    started["args"] = ["/bin/sh", "-c", "trap '' HUP; exec \"$@\"", "sh", *started["args"]]
    out = tmp_path / "out"
    with out.open("w") as file, subprocess.Popen(**started, stdout=file) as run:
        while out.read_text().count("ready") < 2:
            assert run.poll() is None
            time.sleep(0.1)
        run.send_signal(signal.SIGHUP)
        assert run.wait(60) == 0


def test_a_process_that_waits_for_the_others_to_join_ends_when_it_is_asked_to_stop(tmp_path: Path) -> None:
    """Its own handler would not run, and the launcher would kill it after half a minute."""
    work = (
        "import os, signal, sys, time\nfrom retrace.compute.device import open_device\n"
        "signal.signal(signal.SIGTERM, lambda *_: os._exit(75))\n"
        "if os.environ['RANK'] == '1':\n    time.sleep(3)\n    sys.exit(2)\n"
        "open_device(1)\n"
    )
    done = subprocess.run(**two_processes(tmp_path, work), capture_output=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "forcefully exiting" not in done.stderr


def test_restarted_processes_find_each_other(tmp_path: Path) -> None:
    work = (
        "import os\nfrom retrace.compute.device import open_device\ndevice = open_device(1)\n"
        "if os.environ['TORCHELASTIC_RESTART_COUNT'] == '0': os.kill(os.getpid(), 9 * device.rank)\n"
        "os.write(1, f'{device.all_reduce_sum([device.rank + 1])}\\n'.encode())\n"  # a line in one piece
    )
    started = two_processes(tmp_path, work, "--max_restarts", "1", python=warm.COMMAND)
    done = subprocess.run(**started, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, "[3.0]\n" * 2), done.stderr


def test_a_launch_file_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    here = Project(tmp_path, {**os.environ, "PYTHONPATH": str(ROOT)})
    done = here.stage("retrace.compute.launch", "--config_file", "launch/gpsu.yaml", "-m", "stages.pretrain", code=2)
    said = "error: launch/gpsu.yaml: no such file; RETRACE_LAUNCH names a file of launch/, such as gpus\n"
    assert done.stderr == said


def test_a_process_for_each_gpu_needs_a_gpu(tmp_path: Path) -> None:
    """As PyTorch's build for processors finds none, even where there are some."""
    here = Project(tmp_path, {**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""})
    file = str(ROOT / "launch/gpus.yaml")
    done = here.stage("retrace.compute.launch", "--config_file", file, "-m", "stages.pretrain", code=2)
    said = f"error: {file}: it starts a process for each GPU; PyTorch finds none here"
    assert done.stderr.splitlines()[-1] == said


@pytest.mark.parametrize(("variables", "options"), [({"SLURM_CPUS_PER_TASK": "24"}, ["--cpus-per-task=24"]), ({}, [])])
def test_a_job_of_several_nodes_passes_its_processors_on(
    tmp_path: Path, variables: dict[str, str], options: list[str]
) -> None:
    """Slurm itself would give the job's launchers one processor each."""
    programs = {"dvc": "$RETRACE_RUN -m stages.pretrain", "srun": 'printf "%s\\n" "$@"', "hostname": "echo node1"}
    for name, does in programs.items():
        write_program(tmp_path / name, does)
    job = {"SLURM_NNODES": "2", "SLURM_GPUS_ON_NODE": "8", "SLURM_JOB_ID": "7", "SLURM_SUBMIT_DIR": str(tmp_path)}
    environment = {**job, **variables, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    with (tmp_path / "out").open("w") as out:  # not a pipe, which a `sleep` of the script's would keep open
        subprocess.run(["bash", ROOT / "launch/slurm.sh", "-s", "pretrain"], env=environment, stdout=out, check=True)
    given = (tmp_path / "out").read_text().splitlines()
    place = given.index("torchrun")
    assert given[:place] == options
    assert given[place + 1 : place + 3] == ["--nnodes=2", "--nproc-per-node=8"]
    assert given[-2:] == ["-m", "stages.pretrain"]


def test_a_cloud_job_leaves_both_lock_files_and_the_reports_in_the_bucket(here: Path) -> None:
    made = [*LOCKFILES, Path("reports/report.html")]
    for path in made:
        write_text(path, "x")
    (here / "bucket").mkdir()
    *_, last = yaml.safe_load((ROOT / "launch/sky.yaml").read_text())["run"].splitlines()
    subprocess.run(["sh", "-c", last.replace("/runs", "bucket")], check=True)
    assert [path for path in made if not (here / "bucket" / path).is_file()] == []
