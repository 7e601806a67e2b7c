"""A few trials of each campaign, always the same."""

import random
from pathlib import Path

import pytest

from retrace.core.files import atomic_folder
from tests.campaigns import twice
from tests.campaigns.damage import in_process
from tests.campaigns.kills import Trial, Trials
from tests.toy import Project

pytestmark = pytest.mark.slow

KILLS = (Trial("finetune-squad@squad-full-1", "all", 0.25), Trial("evaluate", "stage", 0.6))


def test_a_pipeline_that_was_killed_ends_with_the_same_bytes(finished: Project, tmp_path: Path) -> None:
    trials = Trials(finished.folder, tmp_path / "trial")
    for trial in KILLS:
        assert trials.kill(trial).wrong == [], trial


def test_two_repro_at_once_end_with_the_same_bytes(finished: Project, tmp_path: Path) -> None:
    codes, wrong = twice.trial(Trials(finished.folder, tmp_path / "trial"), finished.folder, "evaluate", False, 1.0)
    assert wrong == [], codes


def test_damaged_files_are_noticed_before_they_are_used(finished: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(finished.folder)
    with atomic_folder(Path(".retrace/states/run/1"), summed=True) as folder:
        (folder / "state.safetensors").write_bytes(bytes(999))
    for kind, count in in_process(Path(".retrace/states"), 80, random.Random(1), 12).items():
        assert count["noticed"] == count["truncated"] + count["flipped"] == 12, kind
