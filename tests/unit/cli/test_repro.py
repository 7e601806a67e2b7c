"""Who is asked to stop, and who is not."""

import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import psutil
import pytest

from retrace.cli.repro import ask, prefer_this_python
from retrace.core.guard import Holder, take
from tests.commands import Done, retrace
from tests.toy import ROOT
from tests.unit.compute.test_launch import two_processes

RUN = """
import os, signal
from retrace.core.errors import exit_cleanly
from retrace.core.guard import guarded
def main():
    with guarded("pretrain-0", [], {}): os.write(1, b"running\\n"); signal.pause()
exit_cleanly(main)
"""


@pytest.fixture(autouse=True)
def _checkout(here: Path) -> None:
    (here / "dvc.yaml").touch()
    (here / ".dvc").mkdir()


@pytest.mark.parametrize("path", ["/usr/bin:/bin", None])
def test_stages_find_this_python_where_its_environment_is_not_activated(
    here: Path, monkeypatch: pytest.MonkeyPatch, path: str | None
) -> None:
    (here / "python").symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(here / "python"))
    if path is None:
        monkeypatch.delenv("PATH")
    else:
        monkeypatch.setenv("PATH", path)
    for _ in range(2):  # the second call leaves PATH as it is
        prefer_this_python()
        assert os.environ["PATH"] == os.pathsep.join([str(here), path or os.defpath])


def test_a_run_is_asked_to_stop() -> None:
    command, environment = [sys.executable, "-c", RUN], {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "running\n"
        assert retrace("stop") == Done(0, f"pretrain-0: process {run.pid} was asked to stop\n", "")
        assert run.wait(timeout=60) == 75
    assert retrace("stop") == Done(0, "nothing is running here\n", "")


def test_a_run_that_would_be_started_again_is_not(tmp_path: Path) -> None:
    """`--max_restarts` is for processes that die, not for those that were asked to stop."""
    work = RUN.replace('"pretrain-0"', '"pretrain-" + os.environ["RANK"]')
    with subprocess.Popen(**two_processes(tmp_path, work, "--max_restarts", "1"), stdout=-1) as run:
        assert run.stdout is not None
        assert [run.stdout.readline() for _ in range(2)] == ["running\n"] * 2
        assert retrace("stop").code == 0
        try:
            assert run.wait(timeout=60) == 75
        finally:
            run.terminate()
        assert run.stdout.read() == ""


def test_a_reused_process_id_is_not_signalled() -> None:
    """As where machines share a folder: the lock is held, but the number in it is another process's here."""
    lock = take(Path(".retrace/locks/pretrain-0.lock"))
    assert lock is not None
    with subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"]) as stranger:
        lock.truncate(0)
        lock.write(f"{stranger.pid} node-7")
        lock.flush()
        line = f"pretrain-0: is running as process {stranger.pid} on node-7, not here, so it was not asked to stop\n"
        assert retrace("stop") == Done(0, line, "")
        assert stranger.poll() is None
        stranger.kill()
    lock.close()


@pytest.mark.parametrize("error", [psutil.AccessDenied(1), psutil.NoSuchProcess(1)])
def test_what_cannot_be_asked_is_said(monkeypatch, error: psutil.Error) -> None:
    monkeypatch.setattr(psutil.Process, "open_files", Mock(side_effect=error))
    monkeypatch.setattr(psutil.Process, "send_signal", sent := Mock())
    denied = isinstance(error, psutil.AccessDenied)
    why = "process 1 is another user's" if denied else "is running as process 1 on here, not here,"
    assert ask(Holder(Path("x.lock"), 1, "here")) == f"{why} {'and' if denied else 'so it'} was not asked to stop"
    sent.assert_not_called()
