"""A few trials of each campaign, always the same."""

from pathlib import Path

import pytest

from tests.campaigns.kills import Trial, Trials
from tests.toy import Project

pytestmark = pytest.mark.slow

KILLS = (Trial("finetune-squad@squad-full-1", "all", 0.5), Trial("evaluate", "stage", 0.6))


def test_a_pipeline_that_was_killed_ends_with_the_same_bytes(finished: Project, tmp_path: Path) -> None:
    trials = Trials(finished.folder, tmp_path / "trial")
    for trial in KILLS:
        assert trials.kill(trial).wrong == [], trial
