import subprocess
from pathlib import Path

import pytest

from tests.console import retrace
from tests.toy import ROOT


def _publish(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    return retrace(monkeypatch, "publish", *arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["name"], "'name' is no repository; expected ORG/NAME"),
        (["org/name", "--base", "org/base"], "--base: 'org/base' is not allowed; expected org/name@commit"),
        (["org/name", "--method", "full"], "--method needs --task"),
        (["org/name", "--seed", "1"], "--seed needs --task"),
        (["org/name", "--task", "news"], "--task: 'news' is not what params.yaml lists; expected one of sst2, squad"),
        (["org/name", "--task", "sst2", "--method", "lora"], "--method: 'lora' is not what params.yaml lists; "),
        (["org/name", "--task", "squad", "--seed", "7"], "--seed: 7 is not what params.yaml lists; expected one of 1"),
    ],
)
def test_what_is_not_there_is_one_line(monkeypatch, capsys, arguments: list[str], message: str) -> None:
    monkeypatch.chdir(ROOT)
    assert _publish(monkeypatch, *arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_a_folder_without_a_commit_is_one_line(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").write_text((ROOT / "params.yaml").read_text())
    subprocess.run(["git", "init", "-q"], check=True)
    assert _publish(monkeypatch, "org/name") == 2
    assert capsys.readouterr().err.startswith("error: git rev-parse HEAD: ")


def test_a_reason_must_be_one_that_there_is(monkeypatch, capsys) -> None:
    monkeypatch.chdir(ROOT)
    assert _publish(monkeypatch, "org/name", "--even-if", "always") == 2
    assert "dirty" in capsys.readouterr().err
