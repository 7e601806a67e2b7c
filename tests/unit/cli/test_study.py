import json
from pathlib import Path

import pytest

from tests.console import retrace
from tests.study import EVIL, write_study
from tests.toy import ROOT


def _study(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    return retrace(monkeypatch, "study", *arguments)


@pytest.mark.parametrize("place", ["", "studies", "studies/mood/data/checkpoints"])
def test_studies_are_listed_from_anywhere_in_the_project(tmp_path: Path, monkeypatch, capsys, place: str) -> None:
    write_study(tmp_path / "studies/mood")
    monkeypatch.chdir(tmp_path / place)
    assert _study(monkeypatch, "list") == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()[1:]] == [
        ["mood", "3", "7", "not", "run", EVIL]
    ]


def test_a_study_that_was_run_says_how(tmp_path: Path, monkeypatch, capsys) -> None:
    write_study(tmp_path / "studies/mood")
    (tmp_path / "studies/mood/reports/study.json").write_text(
        json.dumps({"title": "T", "source": "S", "small": True, "tables": {}})
    )
    monkeypatch.chdir(tmp_path)
    assert _study(monkeypatch, "list") == 0
    assert "  small  " in capsys.readouterr().out


def test_the_projects_own_studies_are_listed(monkeypatch, capsys) -> None:
    monkeypatch.chdir(ROOT)
    assert _study(monkeypatch, "list") == 0
    names = {line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]}
    assert names == {path.parent.name for path in ROOT.glob("studies/*/published.yaml")}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare", "news"], "error: NAME: 'news' is no study; expected one of mood\n"),
        (
            ["compare", "mood"],
            "error: studies/mood was not run: retrace study run mood\n",
        ),
    ],
)
def test_what_is_not_there_is_one_line(tmp_path: Path, monkeypatch, capsys, arguments: list[str], message: str) -> None:
    write_study(tmp_path / "studies/mood")
    monkeypatch.chdir(tmp_path)
    assert _study(monkeypatch, *arguments) == 2
    assert capsys.readouterr().err == message


def test_a_folder_without_studies_is_one_line(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    assert _study(monkeypatch, "list") == 2
    assert "neither here nor above is a folder studies with a study in it\n" in capsys.readouterr().err
