import os
import subprocess
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from retrace.cli import publish
from retrace.core.errors import InputError
from retrace.core.files import atomic_folder, write_json, write_text
from retrace.core.guard import running
from retrace.core.paths import PRETRAINED
from retrace.core.settings import read_params
from retrace.evaluation.records import DETAILS
from retrace.hub.pins import Pin
from retrace.perplexity.measures import PERPLEXITY_DETAILS
from retrace.publishing.bundle import Address
from retrace.publishing.card import Trained
from tests.commands import refused, retrace
from tests.toy import ROOT, copy_settings

WRONG = [
    ("name", "error: 'name' is not a repository; expected ORG/NAME\n"),
    ("org/name --method full", "--method and --seed are for fine-tuned models; name one with --task\n"),
    ("org/name --seed 1", "--method and --seed are for fine-tuned models; name one with --task\n"),
    ("org/name --task news", "task: 'news' is not what params.yaml lists; expected one of sst2, squad"),
    ("org/name --task sst2 --method=", "--method: '' is not what params.yaml lists; expected one of full, scratch"),
    ("org/name --task squad --seed 7", "--seed: 7 is not what params.yaml lists; expected one of 1"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_what_is_not_there_is_said(monkeypatch, arguments: str, message: str) -> None:
    monkeypatch.chdir(ROOT)
    done = retrace("publish", *arguments.split())
    assert (done.code, done.out, message in done.err) == (2, "", True), done.err


def test_only_the_project_s_own_files_have_to_be_committed(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The project may be in a folder of its git repository, beside others, and git may be set to show no new files."""
    subprocess.run(["git", "init", "-q"], check=True)
    subprocess.run(["git", "config", "status.showUntrackedFiles", "no"], check=True)
    for name in ("project", "other"):
        (here / name).mkdir()
    monkeypatch.chdir(here / "project")
    monkeypatch.setattr(publish, "_stale_stages", lambda _: [])
    sound: Any = SimpleNamespace(learned_nothing={})
    (here / "other/new").touch()
    assert publish._doubts(sound) == {}
    Path("new").touch()
    assert publish._doubts(sound)["dirty"].startswith("not committed: ")


@pytest.mark.filterwarnings("ignore:_NoneStep:DeprecationWarning")  # of pygtrie, which DVC uses
def test_a_perplexity_on_the_card_has_to_be_up_to_date_whatever_the_methods_start_from(here: Path) -> None:
    """Where all start from checkpoints, their scores do not depend on it, but the card has it all the same."""
    copy_settings(here)
    params = read_params()
    params["methods"] = {"bert": {"method": "full", "checkpoint": "bert"}}
    params["finetune"] |= {"methods": ["bert"], "squad_methods": []}
    write_json(DETAILS, {})
    write_json(PERPLEXITY_DETAILS, {"valid": {"beats_unigram": True, "flags": {}}})
    write_text(Path(".dvc/config"), "[core]\n    no_scm = true\n")
    stages = {name: {"cmd": "true", "outs": [f"{name}.json"]} for name in ("evaluate", "perplexity-eval")}
    write_json(Path("dvc.yaml"), {"stages": stages})
    assert publish._stale_stages(Trained(None, params)) == ["evaluate", "perplexity-eval"]


@pytest.mark.filterwarnings("ignore:_NoneStep:DeprecationWarning")
def test_what_another_dvc_is_making_is_named_in_one_line(here: Path) -> None:
    write_text(Path(".dvc/config"), "[core]\n    no_scm = true\n")
    write_json(Path("dvc.yaml"), {"stages": {"evaluate": {"cmd": "true", "outs": ["made"]}}})
    writer = {"pid": os.getpid(), "cmd": "dvc repro"}
    write_json(Path(".dvc/tmp/rwlock"), {"write": {str(here / "made"): writer}})
    evaluated: Any = SimpleNamespace(perplexity=None, details={})
    with pytest.raises(InputError, match=r"^dvc status: .*made' is busy, it is being blocked by: \(PID \d+\): dvc"):
        publish._stale_stages(evaluated)


@pytest.mark.usefixtures("here")
def test_an_adapter_is_only_sent_for_a_base_with_the_weights_that_it_was_trained_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Path("model.safetensors").write_bytes(b"ours")
    trained: Any = SimpleNamespace(base=Path(), name="sst2 lora 1")
    address = Address("org/name", None, Pin("org/base", "a" * 40))
    upload = Mock(return_value=(Pin("org/name", "b" * 40), True))
    monkeypatch.setattr(publish, "upload", upload)
    for stored in (sha256(b"theirs").hexdigest(), None):  # others, or none
        monkeypatch.setattr(publish, "stored_digest", Mock(return_value=stored))
        with pytest.raises(
            InputError, match=r"^--base: org/base@a{40} has other weights than \.; publish these first$"
        ):
            publish._send(Path(), trained, address, False, "c" * 40)
    upload.assert_not_called()
    monkeypatch.setattr(publish, "stored_digest", Mock(return_value=sha256(b"ours").hexdigest()))
    assert publish._send(Path(), trained, address, False, "c" * 40) == f"published as org/name@{'b' * 40}"


def test_no_other_model_is_prepared_before_this_one_is_sent(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dry run for another repository would replace the card of the one whose weights are being sent."""
    copy_settings(here)
    Path("models/pretrained").mkdir(parents=True)
    monkeypatch.setenv("HF_TOKEN", "token")
    monkeypatch.setattr(publish, "git", lambda *_: "c" * 40)
    monkeypatch.setattr(publish, "_doubts", lambda _: {})
    monkeypatch.setattr(publish, "write_pretrained", lambda *_: None)
    monkeypatch.setattr(publish, "model_card", lambda _, __, address, ___: address.repository)
    monkeypatch.setattr(publish, "_write_card", lambda folder, _, card, __: (folder / "README.md").write_text(card))
    monkeypatch.setattr(publish, "_list", lambda *_: None)
    sent = []

    def upload(folder: Path, *_: object) -> tuple[Pin, bool]:
        sent.append(refused("publish", "org/other"))
        sent.append((folder / "README.md").read_text())
        assert running() == [], "what is being sent is no run that `retrace stop` could ask to save its state"
        return Pin("org/name", "b" * 40), True

    monkeypatch.setattr(publish, "upload", upload)
    assert retrace("publish", "org/name", "--push").out == f"published as org/name@{'b' * 40}\n"
    assert sent == [f"error: publish is already running here as process {os.getpid()}\n", "org/name"]
    assert retrace("publish", "org/other").code == 0


def test_a_model_is_not_published_with_a_damaged_base(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The body of a frozen model, or of an adapter's, is the base's; DVC does not notice damage."""
    copy_settings(here)
    write_json(Path("data/classification/sst2/classes.json"), ["negative", "positive"])
    for folder in (PRETRAINED, Path("models/sst2/full/1")):
        with atomic_folder(folder, summed=True) as made:
            (made / "config.json").write_text("{}")
    (PRETRAINED / "config.json").write_text("{")
    monkeypatch.setattr(publish, "git", lambda *_: "c" * 40)
    monkeypatch.setattr(publish, "_doubts", lambda _: {})
    said = refused("publish", "org/name", "--task", "sst2", "--method", "full")
    assert said.startswith("error: models/pretrained/config.json: damaged: ")


def test_a_folder_without_a_model_or_a_commit_is_one_line(here: Path) -> None:
    copy_settings(here)
    subprocess.run(["git", "init", "-q"], check=True)
    said = "models/pretrained: no such folder; run dvc repro, or dvc pull where others have run it"
    assert refused("publish", "org/name") == f"error: {said}\n"
    Path("models/pretrained").mkdir(parents=True)
    assert refused("publish", "org/name").startswith(f"error: {here}: git rev-parse: fatal: ")
