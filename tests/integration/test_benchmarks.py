"""Benchmarks that run DVC or stages compare what they say they compare."""

import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.toy import ROOT


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")


def test_no_side_of_the_benchmark_of_a_repro_without_work_reports_to_dvc(tmp_path: Path, monkeypatch) -> None:
    """The project does not, and a new repository would."""
    noop = import_module("noop")
    folders = pipeline, reports = tmp_path / "pipeline", tmp_path / "reports"
    for folder in folders:
        folder.mkdir()
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    noop.make_empty(pipeline, 1)
    monkeypatch.chdir(pipeline)
    monkeypatch.setenv("DVC_NO_ANALYTICS", "")
    monkeypatch.setenv("DVC_DAEMON", "1")  # reports stay where they are written, as no process is started to send them
    monkeypatch.setenv("TMPDIR", str(reports))
    monkeypatch.setattr(noop, "ROUNDS", 1)
    noop.main()
    assert list(reports.iterdir()) == []
