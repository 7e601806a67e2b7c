"""Curves of a run while it lasts."""

import subprocess
from pathlib import Path

import pytest

from retrace.training import progress as live
from retrace.training.progress import LiveCurves


@pytest.fixture(autouse=True)
def _at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(live, "BEGINS", 0.0)
    monkeypatch.setattr(live, "EVERY", 0.0)


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
    monkeypatch.setattr(live, "BEGINS", 60.0)
    _log(range(1, 3))
    assert not Path("reports/live/sst2/full/1").exists()


def test_only_the_first_process_writes() -> None:
    _log(range(1, 3), wanted=False)
    assert not Path("reports").exists()


def test_a_repository_without_a_commit_has_no_curves_and_ends_no_run() -> None:
    subprocess.run(["git", "init", "-q"], check=True)
    _log(range(1, 3))
    assert not Path("reports/live/sst2/full/1/plots").exists()
