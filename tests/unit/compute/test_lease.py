"""Processes that share GPUs which are not there."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

import pytest

from retrace.compute.lease import lease_gpus, visible_gpus
from retrace.core.errors import InputError
from tests.commands import pretend_gpus, python, write_program
from tests.toy import ROOT

TAKE = """
import os, sys
from retrace.compute.lease import lease_gpus
lease_gpus()
print(os.environ.get("LOCAL_RANK", "-"), os.environ.get("CUDA_VISIBLE_DEVICES"), flush=True)
sys.stdin.read()
"""
RANK = """
import os, time
from retrace.compute.lease import lease_gpus
lease_gpus()
print(time.monotonic(), flush=True)
time.sleep(0.5)
print(time.monotonic(), flush=True)
"""
ONE = """
import sys
from retrace.compute.lease import lease_gpus
from retrace.core.errors import exit_cleanly
exit_cleanly(lease_gpus)
sys.stdin.read()
"""
LAUNCH = """
import os, subprocess, sys
ranks = [subprocess.Popen([sys.executable, "-c", sys.argv[1]], env={**os.environ, "LOCAL_RANK": rank}) for rank in "10"]
sys.exit(max(rank.wait() for rank in ranks))
"""


def _start(gpus: dict[str, str], *command: str, **variables: str) -> subprocess.Popen[str]:
    command = command or (sys.executable, "-c", TAKE)
    environment = {**gpus, "PYTHONPATH": str(ROOT), **variables}
    return subprocess.Popen(command, env=environment, stdin=-1, stdout=-1, stderr=-1, text=True)


def _line(stream: IO[str] | None) -> str:
    assert stream is not None
    return stream.readline().strip()


def _end(*processes: subprocess.Popen[str]) -> None:
    for process in processes:
        process.communicate(timeout=60)
        assert process.returncode == 0


def test_each_process_leases_its_own_gpu_and_one_too_many_waits(tmp_path: Path) -> None:
    gpus = pretend_gpus(tmp_path / "two", 2)
    first, second = _start(gpus), _start(gpus)
    assert {_line(first.stdout), _line(second.stdout)} == {"- GPU-0", "- GPU-1"}
    leases = tmp_path / "two/retrace-gpus"  # of other users too, who must not remove them: the sticky bit
    assert [path.stat().st_mode & 0o1777 for path in (leases, *leases.iterdir())] == [0o1777, 0o666, 0o666]
    third = _start(gpus)
    taken_by = ", ".join(map(str, sorted((first.pid, second.pid))))
    assert _line(third.stderr) == f"waiting for a GPU; in use by PID {taken_by}"
    elsewhere = pretend_gpus(tmp_path / "one", 1)
    alone = _start(elsewhere)
    assert _line(alone.stdout) == "- GPU-0"
    shares = _start(elsewhere, RETRACE_SHARE_GPUS="true")
    assert _line(shares.stdout) == "- None"
    second.send_signal(signal.SIGKILL)
    second.communicate()
    assert _line(third.stdout) in ("- GPU-0", "- GPU-1")
    _end(first, third, alone, shares)


def test_launches_of_several_processes_take_turns_without_deadlock(tmp_path: Path) -> None:
    """Each launch's second process starts before its first, which takes the first GPU before that."""
    gpus = {**pretend_gpus(tmp_path, 2), "LOCAL_WORLD_SIZE": "2"}
    alone = _start(gpus, LOCAL_WORLD_SIZE="1", CUDA_VISIBLE_DEVICES="1")
    assert _line(alone.stdout) == "- 1"
    launches = [_start(gpus, sys.executable, "-c", LAUNCH, RANK) for _ in range(3)]
    assert _line(launches[0].stderr).startswith("waiting for GPU-")
    _end(alone)
    times = [sorted(map(float, launch.communicate(timeout=60)[0].split())) for launch in launches]
    assert [len(each) for each in times] == [4, 4, 4]
    first, second, third = sorted((each[0], each[-1]) for each in times)
    assert first[1] < second[0]
    assert second[1] < third[0]


def test_more_processes_than_gpus_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**pretend_gpus(tmp_path, 2), "LOCAL_WORLD_SIZE": "3", "CUDA_DEVICE_ORDER": ""}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    with pytest.raises(InputError, match="3 processes share 2 GPUs here; expected at most one process for each"):
        lease_gpus()


def test_processes_of_one_launcher_do_not_wait_for_the_only_gpu(tmp_path: Path) -> None:
    """The first has leased it, and would wait for the second in the process group."""
    gpus = {**pretend_gpus(tmp_path, 1), "LOCAL_WORLD_SIZE": "2"}
    launch = _start(gpus, sys.executable, "-c", LAUNCH, ONE)
    assert _line(launch.stderr) == "error: 2 processes share GPU-0; expected at most one process for each GPU"
    launch.communicate(timeout=60)
    assert launch.returncode == 2


def test_the_only_gpu_that_a_process_sees_is_its_first(tmp_path: Path) -> None:
    """DistributedDataParallel would send the batches of the process with LOCAL_RANK 1 to a second one."""
    gpus = {**pretend_gpus(tmp_path, 2), "LOCAL_WORLD_SIZE": "2"}
    for share in ("false", "true"):
        ranks = [_start(gpus, LOCAL_RANK=rank, CUDA_VISIBLE_DEVICES=rank, RETRACE_SHARE_GPUS=share) for rank in "01"]
        assert [_line(rank.stdout) for rank in ranks] == ["0 0", "0 1"]
        _end(*ranks)
    second = _start(pretend_gpus(tmp_path, 2), LOCAL_RANK="1")  # of a launcher that does not say how many it started
    assert _line(second.stdout) == "0 GPU-0"
    _end(second)


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        (None, {"GPU-0": "GPU-0", "GPU-1": "GPU-1", "GPU-2": "GPU-2"}),
        ("2,0", {"2": "GPU-2", "0": "GPU-0"}),
        ("GPU-1", {"GPU-1": "GPU-1"}),
        ("MIG-7,1", {"MIG-7": "MIG-7", "1": "GPU-1"}),
        ("0,9,1", {"0": "GPU-0"}),
        ("02, 1", {"02": "GPU-2", "1": "GPU-1"}),
        ("", {}),
        ("-1", {}),
    ],
)
def test_gpus_are_those_that_cuda_would_see(tmp_path: Path, monkeypatch, visible: str | None, expected: dict) -> None:
    monkeypatch.setenv("PATH", pretend_gpus(tmp_path, 3)["PATH"])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert [*visible_gpus().items()] == [*expected.items()]


def test_there_are_no_gpus_without_a_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert visible_gpus() == {}
    write_program(tmp_path / "nvidia-smi", "echo NVIDIA-SMI has failed because it could not talk to the driver\nexit 9")
    assert visible_gpus() == {}


def test_gpus_are_numbered_as_nvidia_smi_does(tmp_path: Path) -> None:
    """The leases use these numbers; CUDA's own order begins with the fastest GPU."""
    said = (
        "import os; from retrace.compute.lease import lease_gpus; lease_gpus(); print(os.environ['CUDA_DEVICE_ORDER'])"
    )
    environment: Any = pretend_gpus(tmp_path, 1)
    assert python(said, **environment).stdout == "PCI_BUS_ID\n"
