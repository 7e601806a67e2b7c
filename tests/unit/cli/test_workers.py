"""Who is asked to stop, and when a worker has ended."""

import os
import signal
import sys
import time
from pathlib import Path

import psutil
import pytest

from retrace.cli.workers import Worker
from retrace.core.guard import PAUSE

STAGE = """
import signal, sys, time
from pathlib import Path
def save(*_):
    time.sleep(0.5)
    Path("saved").write_text(Path("saved").read_text() + "once" if Path("saved").exists() else "once")
    sys.exit(75)
signal.signal(signal.SIGTERM, save)
Path("begun").touch()
while True: time.sleep(0.1)
"""
LAUNCHER = f"""
import subprocess, sys
sys.exit(subprocess.run([sys.executable, "-c", {STAGE!r}], start_new_session="own" in sys.argv).returncode)
"""


pytestmark = pytest.mark.usefixtures("here")


def _begun(*arguments: str) -> Worker:
    """A worker whose stage has begun."""
    worker = Worker([sys.executable, "-c", LAUNCHER, *arguments], Path("log"))
    while not Path("begun").exists():
        assert worker.poll() is None
        time.sleep(PAUSE)
    return worker


def _code(worker: Worker, stop: bool = False) -> int:
    while (code := worker.poll()) is None:
        if stop:
            worker.stop()
        time.sleep(PAUSE)
    return code


@pytest.mark.parametrize("group", ["same", "own"])
def test_the_stage_is_asked_once_and_its_launcher_says_how_it_ended(group: str) -> None:
    assert _code(_begun(group), stop=True) == 75
    assert Path("saved").read_text() == "once"


def test_what_a_killed_launcher_leaves_behind_saves_and_ends_before_the_worker_counts_as_ended() -> None:
    worker = _begun()
    (stage,) = psutil.Process(worker.process.pid).children()
    os.kill(worker.process.pid, signal.SIGKILL)
    assert _code(worker) == -signal.SIGKILL
    assert not stage.is_running() or stage.status() == psutil.STATUS_ZOMBIE
    assert Path("saved").read_text() == "once"


def test_output_goes_to_the_end_of_the_file(tmp_path: Path) -> None:
    log = tmp_path / "log"
    for word in ("first", "second"):
        assert _code(Worker(["sh", "-c", "echo $WORD; echo also >&2"], log, {**os.environ, "WORD": word})) == 0
    assert log.read_text() == "first\nalso\nsecond\nalso\n"
