import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from retrace.cli import publish
from tests.commands import refused, retrace
from tests.toy import ROOT, copy_settings

WRONG = [
    ("name", "error: 'name' is not a repository; expected ORG/NAME\n"),
    ("org/name --method full", "--method and --seed need --task\n"),
    ("org/name --seed 1", "--method and --seed need --task\n"),
    ("org/name --task news", "task: 'news' is not what params.yaml lists; expected one of sst2, squad"),
    ("org/name --task sst2 --method lora", "--method: 'lora' is not what params.yaml lists; "),
    ("org/name --task squad --seed 7", "--seed: 7 is not what params.yaml lists; expected one of 1"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_what_is_not_there_is_said(monkeypatch, arguments: str, message: str) -> None:
    monkeypatch.chdir(ROOT)
    done = retrace("publish", *arguments.split())
    assert (done.code, done.out, message in done.err) == (2, "", True), done.err


def test_a_model_is_refused_for_what_its_flag_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publish, "git", lambda *_: "")
    monkeypatch.setattr(publish, "_stale_stages", lambda _: [])
    line = "worse than tf-idf: accuracy 73.3, tf-idf 100.0"
    flagged: Any = SimpleNamespace(name="news full 1", learned_nothing={"not_above_tfidf": ""}, flag_lines=[line])
    assert publish._doubts(flagged) == {"unlearned": f"news full 1 is flagged: {line}"}


def test_a_folder_without_a_model_or_a_commit_is_one_line(here: Path) -> None:
    copy_settings(here)
    subprocess.run(["git", "init", "-q"], check=True)
    said = "models/pretrained: no such folder; run dvc repro, or dvc pull where others have run it"
    assert refused("publish", "org/name") == f"error: {said}\n"
    Path("models/pretrained").mkdir(parents=True)
    assert refused("publish", "org/name").startswith(f"error: {here}: git rev-parse: fatal: ")
