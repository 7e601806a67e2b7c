import pytest

from retrace.training import progress
from retrace.training.progress import Meter


def test_plain_lines_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    monkeypatch.setattr(progress, "PLAIN_EVERY", 0.0)
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


def test_a_run_that_goes_on_counts_from_where_it_was(capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    monkeypatch.setattr(progress, "PLAIN_EVERY", 0.0)
    with Meter("train", 9, done=6, share=2 / 3) as meter:
        meter.step(100, 1.5, 0.5, 7 / 9)
    assert capsys.readouterr().out.startswith("train  7/9  loss 1.500  ")
