"""Lines about a run, and its curves while it lasts."""

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


def test_plain_lines_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with Meter("train", 2) as meter:
        meter.step(100, 1.5, 0.5, 0.5)
        meter.step(100, 1.25, 0.5, 1.0)
        meter.say("done")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("train  1/2  loss 1.500  gradient 0.50  ")
    assert lines[1].startswith("train  2/2  loss 1.250  ")
    assert "tokens/s" in lines[0]
    assert lines[2] == "done"


def test_a_quiet_meter_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with Meter("train", 1, quiet=True) as meter:
        meter.step(1, 1.0, 1.0, 1.0)
        meter.say("x")
    assert capsys.readouterr().out == ""


def test_a_run_that_goes_on_counts_from_where_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    with Meter("train", 9, done=6, share=2 / 3) as meter:
        meter.step(100, 1.5, 0.5, 7 / 9)
    assert capsys.readouterr().out.startswith("train  7/9  loss 1.500  ")


def _log(steps: range, resumes: bool = False, wanted: bool = True) -> None:
    with LiveCurves("sst2 full 1", resumes, wanted) as curves:
        for step in steps:
            curves.log(step, loss=10.0 - step)


def _points() -> list[str]:
    return Path("reports/live/sst2/full/1/plots/metrics/loss.tsv").read_text().split()


def test_a_curve_has_the_steps_and_a_run_that_resumes_adds_to_it() -> None:
    _log(range(1, 3))
    assert _points()[-4:] == ["1", "9.0", "2", "8.0"]
    _log(range(3, 4), resumes=True)
    assert _points()[-6:] == ["1", "9.0", "2", "8.0", "3", "7.0"]


def test_a_new_run_removes_what_an_earlier_one_left(monkeypatch: pytest.MonkeyPatch) -> None:
    _log(range(1, 3))
    monkeypatch.setattr(progress, "BEGINS", 60.0)
    _log(range(1, 3))
    assert not Path("reports/live/sst2/full/1").exists()


def test_only_the_first_process_writes() -> None:
    _log(range(1, 3), wanted=False)
    assert not Path("reports").exists()


def test_a_repository_without_a_commit_has_no_curves_and_ends_no_run() -> None:
    subprocess.run(["git", "init", "-q"], check=True)
    _log(range(1, 3))
    assert not Path("reports/live/sst2/full/1/plots").exists()
