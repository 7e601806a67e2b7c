"""The local hub's own promises: faults come as often as they were ordered, and nothing else is reached or left."""

import contextlib
import http.client
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hub import Cut, Fault, LocalHub, Silence
from tests.hub.client import run_client


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
