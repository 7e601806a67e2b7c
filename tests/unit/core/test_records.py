"""What git says of a folder, and where it says nothing."""

from pathlib import Path

import pytest

from retrace.core import records
from retrace.core.errors import InputError
from retrace.core.files import write_text
from retrace.core.records import find_origin, git, try_git, uncommitted


def test_git_answers_for_the_folder_or_fails_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(InputError, match=rf"^{tmp_path}: git status: fatal: not a git repository[^\n]*$"):
        git("status", folder=tmp_path)
    git("init", "-q", folder=tmp_path)
    (tmp_path / "new").touch()
    (tmp_path / ".gitignore").write_text("out\n")
    assert git("status", "--porcelain", "--", "new", folder=tmp_path) == "?? new"
    assert git("check-ignore", "out", folder=tmp_path) == "out"
    assert try_git("rev-parse", "HEAD", folder=tmp_path) is None


def test_a_study_is_of_the_commit_of_the_project_around_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if git ignores the study's folder: changes are those of the project."""
    (tmp_path / ".gitignore").write_text(".retrace\n")
    git("init", "-q", folder=tmp_path)
    git("add", ".", folder=tmp_path)
    git("-c", "user.name=a", "-c", "user.email=b", "commit", "-qm", "c", folder=tmp_path)
    study = tmp_path / ".retrace/studies/a"
    study.mkdir(parents=True)
    for folder in (tmp_path, study):
        monkeypatch.setattr(records, "PROJECT", folder)
        assert find_origin().clean
    (tmp_path / ".gitignore").write_text(".retrace\na\n")
    for folder in (tmp_path, study):
        monkeypatch.setattr(records, "PROJECT", folder)
        assert not find_origin().clean
    assert find_origin().commit == git("rev-parse", "HEAD", folder=tmp_path)


def test_without_git_nothing_is_said_to_be_of_a_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(InputError, match=r"^git: No such file or directory$"):
        git("status")
    assert try_git("status") is None
    found = find_origin()
    assert (found.commit, found.clean) == (None, False)


def test_git_names_files_whatever_their_bytes(tmp_path: Path) -> None:
    git("init", "-q", folder=tmp_path)
    name = b"\xe9t\xe9".decode(errors="surrogateescape")
    (tmp_path / name).touch()
    assert git("ls-files", "--others", folder=tmp_path) == name
    assert uncommitted(folder=tmp_path) == [r"\xe9t\xe9"]  # which can be written into a json file


def test_what_the_pipeline_writes_and_what_git_does_not_know_is_no_change(tmp_path: Path, monkeypatch) -> None:
    """Otherwise every stage but the first would be recorded as run from a commit with changes."""
    monkeypatch.setattr(records, "PROJECT", tmp_path)
    written = ("dvc.lock", "data/dvc.lock", "reports/metrics.json", "studies/a/reports/study.json")
    for name in (*written, "params.yaml"):
        write_text(tmp_path / name, "old")
    git("init", "-q", folder=tmp_path)
    git("add", ".", folder=tmp_path)
    git("-c", "user.name=a", "-c", "user.email=b", "commit", "-qm", "c", folder=tmp_path)
    for name in (*written, "notes.txt"):
        write_text(tmp_path / name, "new")
    assert find_origin().clean
    write_text(tmp_path / "params.yaml", "new")
    assert not find_origin().clean
