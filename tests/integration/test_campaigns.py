"""A few trials of each campaign, always the same."""

import random
from pathlib import Path

import pytest

from retrace.core.files import atomic_folder
from tests.campaigns import disks, twice
from tests.campaigns.damage import in_process
from tests.campaigns.kills import Trial, Trials
from tests.campaigns.soak import CODE, EDITS, Kill, Round, Soak, set_state
from tests.toy import ROOT, Project

KILLS = (Trial("finetune-squad@squad-full-1", "all", 0.25), Trial("evaluate", "stage", 0.6))


@pytest.mark.thorough
def test_a_pipeline_that_was_killed_ends_with_the_same_bytes(finished: Project, tmp_path: Path) -> None:
    trials = Trials(finished.folder, tmp_path / "trial")
    found = [trials.kill(trial) for trial in KILLS]
    assert [outcome.wrong for outcome in found] == [[], []], KILLS
    assert any(outcome.counts["killed"] for outcome in found), "otherwise nothing was tested"


def test_two_repro_at_once_end_with_the_same_bytes(finished: Project, tmp_path: Path) -> None:
    codes, wrong = twice.trial(finished.folder, tmp_path / "trial", "evaluate", False, 1.0)
    assert wrong == [], codes


@pytest.mark.thorough
def test_a_project_that_is_edited_killed_and_collected_has_the_same_bytes(finished: Project, tmp_path: Path) -> None:
    soak = Soak(finished.copy(tmp_path / "project"), tmp_path / "site")
    (tmp_path / "project/models/.tokens.partial").mkdir()  # as a killed stage leaves it
    _, wrong = soak.turn(Round(1, {}, None, ("doctor",)))
    assert wrong == [str(tmp_path / "project/models/.tokens.partial")]
    ran, wrong = soak.turn(Round(2, {"code of the page": True}, Kill("stage", 1.0, False), ("gc",)))
    assert (set(ran) <= {"report"}, wrong) == (True, [])
    (tmp_path / "project/reports/more").write_text("x")
    ran, wrong = soak.turn(Round(3, {}, None, ()))
    assert ran == ["report"]  # as its first bytes were garbage
    assert wrong == ["reports/more is another than before"]


def test_what_the_rounds_edit_is_there_and_is_taken_back(project: Project) -> None:
    """In a soak the first edit of code that is not there would end it, after minutes or hours."""
    state = {name: edit.values[1] for name, edit in EDITS.items()}
    assert set_state(project, {}, state) == set_state(project, state, {}) == [*EDITS]
    for file, *_ in CODE.values():
        assert (project.folder / file).read_bytes() == (ROOT / file).read_bytes()


def test_damaged_files_are_noticed_before_they_are_used(finished: Project, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(finished.copy(tmp_path / "project").folder)
    with atomic_folder(Path(".retrace/states/run/1"), summed=True) as folder:
        (folder / "state.safetensors").write_bytes(bytes(999))
    for kind, count in in_process(Path(".retrace/states"), 80, random.Random(1), 12).items():
        assert count["noticed"] == count["truncated"] + count["flipped"] == 12, kind


def test_a_file_that_a_rerun_leaves_out_is_wrong(finished: Project, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(disks, "mount", lambda *disk: None)  # which needs root
    whole = finished.copy(tmp_path / "whole").folder
    (whole / "reports/figures/more.svg").write_text("x")
    assert disks.trial(whole, tmp_path / "disk", "report", 0.5, False).wrong == ["reports/figures/more.svg"]
