import subprocess
from pathlib import Path

import pytest

from retrace.core.errors import InputError
from retrace.publishing.provenance import head_commit, uncommitted_files


def _git(*arguments: str) -> str:
    names = ("-c", "user.name=test", "-c", "user.email=test@example.org")
    return subprocess.run(["git", *names, *arguments], capture_output=True, text=True, check=True).stdout.strip()


def test_outputs_belong_to_a_commit_where_nothing_differs_from_it(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    _git("init", "-q")
    with pytest.raises(InputError, match="git rev-parse HEAD: "):
        head_commit()
    (tmp_path / ".gitignore").write_text("out\n")
    (tmp_path / "out").write_text("ignored")
    _git("add", "-A")
    _git("commit", "-qm", "one")
    assert head_commit() == _git("rev-parse", "HEAD")
    assert uncommitted_files() == []
    (tmp_path / "new file").write_text("new")
    (tmp_path / ".gitignore").write_text("out\nmore\n")
    assert uncommitted_files() == [".gitignore", '"new file"']


def test_no_repository_is_an_input_error(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(InputError, match="not a git repository"):
        head_commit()
