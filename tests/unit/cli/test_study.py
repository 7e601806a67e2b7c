from pathlib import Path

import pytest

from retrace.core.files import write_json
from tests.commands import retrace
from tests.study import EVIL, write_study


@pytest.fixture(autouse=True)
def _mood(here: Path) -> None:
    write_study(here / "studies/mood")


@pytest.mark.parametrize("place", ["", "studies", "studies/mood/data/checkpoints"])
def test_studies_are_listed_from_anywhere_in_the_project(monkeypatch, place: str) -> None:
    monkeypatch.chdir(place or ".")
    assert retrace("study", "list").out.splitlines()[1].split() == ["mood", "3", "7", "not", "run", EVIL]


def test_a_study_that_was_run_says_how() -> None:
    write_json(Path("studies/mood/reports/study.json"), {"title": "T", "source": "S", "small": True, "tables": {}})
    assert "  small  " in retrace("study", "list").out


def test_what_is_not_there_is_one_line() -> None:
    assert retrace("study", "compare", "news").err == "error: NAME: 'news' is not a study; expected one of mood\n"
    assert (
        retrace("study", "compare", "mood").err == "error: studies/mood has not been run; use: retrace study run mood\n"
    )


def test_a_folder_without_studies_is_one_line(monkeypatch) -> None:
    monkeypatch.chdir("/")
    assert "no folder studies with a study in it, in " in retrace("study", "list").err
