"""Lines about a run, and its curves while it lasts."""

import socket
import subprocess
from pathlib import Path

import pytest

from retrace.training import progress
from retrace.training.progress import LiveCurves, Meter


@pytest.fixture(autouse=True)
def _at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress, "BEGINS", 0.0)
    monkeypatch.setattr(progress, "EVERY", 0.0)
    monkeypatch.setattr(progress, "PLAIN_EVERY", 0.0)


def test_a_quiet_meter_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with Meter("train", 1, quiet=True) as meter:
        meter.step(1, 1.0, 1.0)
        meter.say("x")
    assert capsys.readouterr().out == ""


def test_speed_and_time_left_count_the_updates_of_this_run_only(monkeypatch, capsys) -> None:
    """Two updates of six were made before; two more take 2 and 4 seconds, so the other two take 6."""
    now = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    monkeypatch.setattr(progress, "PLAIN_EVERY", 5.0)
    meter = Meter("train", 6, done=2)
    for seconds in (2.0, 6.0):
        now = seconds
        meter.step(300, 1.5, 0.5)
    now = 100.0
    meter.resume()  # from an evaluation
    now = 102.0
    meter.step(600, 1.5, 0.5)
    assert meter.speed == (300 + 300 + 600) / 8
    now = 103.0
    meter.step(0, 1.25, 0.5)
    meter.say("done")
    assert capsys.readouterr().out.splitlines() == [  # not two within five seconds, but the last
        "train  4/6  loss 1.500  grad norm 0.50  100 tokens/s  6 s left",
        "train  5/6  loss 1.500  grad norm 0.50  150 tokens/s  3 s left",
        "train  6/6  loss 1.250  grad norm 0.50  133 tokens/s  0 s left",
        "done",
    ]


def test_a_run_whose_output_is_closed_goes_on_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `python -m stages.pretrain >&-` closes it; Python then has no standard output."""
    monkeypatch.setattr(progress.sys, "stdout", None)
    with Meter("train", 1) as meter:
        meter.step(100, 1.5, 0.5)
        meter.say("done")


def test_a_terminal_has_a_bar_and_lines_above_it(monkeypatch, capsys) -> None:
    monkeypatch.setattr(progress.sys.stdout, "isatty", lambda: True)
    with Meter("train", 2) as meter:
        meter.step(100, 1.5, 0.5)
        assert meter._bar is not None
        (task,) = meter._bar.tasks
        meter.say("done")
    assert (task.completed, task.total) == (1, 2)
    assert task.fields["note"].startswith("loss 1.500  grad norm 0.50  ")
    assert "done" in capsys.readouterr().out


def test_points_of_a_curve_are_seconds_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    monkeypatch.setattr(progress, "BEGINS", 30.0)
    monkeypatch.setattr(progress, "EVERY", 5.0)
    with LiveCurves("sst2 full 1", resumes=False, wanted=True) as curves:
        for now in (10.0, 29.9, 30.0, 34.9, 35.0, 39.9):
            curves.log(int(now), loss=1.0)
    assert _points()[-4::2] == ["30", "35"]


def _log(steps: range, resumes: bool = False, wanted: bool = True) -> None:
    with LiveCurves("sst2 full 1", resumes, wanted) as curves:
        for step in steps:
            curves.log(step, loss=10.0 - step)


def _points() -> list[str]:
    return Path("reports/live/sst2/full/1/plots/metrics/loss.tsv").read_text().split()


@pytest.mark.parametrize("is_cut", [False, True])
def test_a_resumed_run_adds_to_its_curve_and_a_new_one_removes_it(monkeypatch, is_cut: bool) -> None:
    """Although it was killed, or the disk was full, while DVCLive wrote its last values, in a file that it empties."""
    _log(range(1, 3))
    if is_cut:
        Path("reports/live/sst2/full/1/metrics.json").write_text("")
    _log(range(3, 4), resumes=True)
    assert _points()[-6:] == ["1", "9.0", "2", "8.0", "3", "7.0"]
    monkeypatch.setattr(progress, "BEGINS", 60.0)
    _log(range(1, 3))
    assert not Path("reports/live/sst2/full/1").exists()


def test_only_the_first_process_writes() -> None:
    _log(range(1, 3), wanted=False)
    assert not Path("reports").exists()


def test_a_repository_without_commits_has_no_curves() -> None:
    subprocess.run(["git", "init", "-q"], check=True)
    _log(range(1, 3))
    assert not Path("reports/live/sst2/full/1/plots").exists()


def test_points_are_not_sent_anywhere() -> None:
    """A fork's `.dvc/config` may name an address; a token is stored on the machine by `dvc studio login`."""
    subprocess.run(["git", "init", "-q"], check=True)
    author = ("-c", "user.name=test", "-c", "user.email=test@example.org")
    subprocess.run(["git", *author, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    Path(".dvc").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        Path(".dvc/config").write_text(f"[studio]\n    url = {url}\n    token = stored\n    repo_url = {url}/project\n")
        _log(range(1, 3))
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert _points()[-4:] == ["1", "9.0", "2", "8.0"]
