"""The local hub's own promises: faults as ordered, nothing else is reached or left, and by hand what a study pins."""

import contextlib
import http.client
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.hub import Cut, Fault, LocalHub, Silence
from tests.hub.client import run_client
from tests.hub.content.studies import SCIBERT
from tests.toy import ROOT

OWN = {
    "citations": {"folder": "data/own/acl-arc", "train": "train.jsonl", "dev": "test.jsonl"},
    "restaurants": {
        "folder": "data/own/semeval14-restaurants", "train": "Restaurants_Train.xml", "pair": "term",
        "dev": "Restaurants_Test_Gold.xml", "label": "polarity", "drop": ["conflict"],
    },
}  # fmt: skip


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[LocalHub]:
    """A hub with one model; it serves every request, and leaves nothing behind when it stops."""
    before = threading.active_count()
    with LocalHub(tmp_path / "hub") as hub:
        hub.add("model", "org/model", {"a.txt": b"text"})
        yield hub
    assert (hub.unserved, threading.active_count()) == ([], before)


def _ask(hub: LocalHub, path: str, method: str = "GET", seconds: float = 5) -> Any:
    """A bare request; the answer, with its body as `content`."""
    connection = http.client.HTTPConnection(hub.endpoint.removeprefix("http://"), timeout=seconds)
    with contextlib.closing(connection):
        connection.request(method, path)
        answer: Any = connection.getresponse()
        answer.content = answer.read()
        return answer


@pytest.mark.parametrize(
    ("fault", "raised", "seconds"),
    [
        (Cut("request"), http.client.RemoteDisconnected, 5),
        (Cut("body"), http.client.IncompleteRead, 5),
        (Silence(30), TimeoutError, 0.3),
    ],
)
def test_a_connection_fails_once(hub: LocalHub, fault: Fault, raised: type[Exception], seconds: float) -> None:
    path = "/org/model/resolve/main/a.txt"
    hub.fail("resolve", 1, fault, method="GET")
    assert _ask(hub, path, "HEAD").status == 200
    with pytest.raises(raised):
        _ask(hub, path, seconds=seconds)
    assert _ask(hub, path).content == b"text"


def _reach_out() -> list[bool | str]:
    from huggingface_hub import HfApi
    from huggingface_hub.utils import httpx

    with socket.socket() as plain, pytest.raises(OSError, match=r"only loopback is allowed here$"):
        plain.connect(("192.0.2.1", 80))
    with pytest.raises(httpx.ConnectError):
        HfApi(endpoint="http://huggingface.test").model_info("org/none")
    return [HfApi().repo_exists("org/none"), HfApi().repo_exists("org/model")]


def test_nothing_but_loopback_is_reached(hub: LocalHub, tmp_path: Path) -> None:
    assert run_client(hub, tmp_path / "home", _reach_out) == [False, True]
    assert sorted(hub.outside) == ["192.0.2.1", "huggingface.test"]


def test_what_is_not_served_is_recorded(tmp_path: Path) -> None:
    with LocalHub(tmp_path) as hub:
        assert _ask(hub, "/api/spaces/org/space").status == 501
        assert _ask(hub, "/storage/models/org/none/" + "0" * 64 + "/a").status == 500
    assert (hub.unserved[0].path, len(hub.unserved)) == ("/api/spaces/org/space", 2)


def test_a_hub_by_hand_has_what_a_study_pins_and_makes_its_files(tmp_path: Path) -> None:
    """It makes only those of the user's own files that are missing. test_studies.py runs on them."""
    study, mine = tmp_path / "studies/study", tmp_path / "data/own/acl-arc/test.jsonl"
    own, pinned = tmp_path / "hub/models/org/own", f"{SCIBERT}@{6:040x}"
    for folder in (study, mine.parent, own):
        folder.mkdir(parents=True)
    params = {"classification": OWN, "checkpoints": {"one": {"family": "bert", "checkpoint": pinned}}}
    (study / "params.yaml").write_text(yaml.safe_dump(params))
    mine.write_text('{"text": "mine", "label": "Uses"}\n')
    (own / "a.txt").write_text("text")
    command = [sys.executable, "-m", "tests.hub", tmp_path / "hub", "--study", study, "--seconds", "0"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    pin_of_own, pin, *written, setting = done.stdout.splitlines()
    assert (pin_of_own.partition("@")[0], pin) == ("org/own", pinned)
    names = [Path(line.partition(":")[0]).name for line in written]
    assert names == ["train.jsonl", "Restaurants_Train.xml", "Restaurants_Test_Gold.xml"]
    assert setting.startswith("export HF_ENDPOINT=http://127.0.0.1:")
    assert setting.endswith(f"HF_HOME={tmp_path / 'hub' / 'home'}")
