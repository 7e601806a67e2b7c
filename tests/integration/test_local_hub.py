"""The local hub as the real clients see it, each in a process of its own with an empty cache."""

import contextlib
import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hub import (
    Cut,
    Fault,
    LocalHub,
    Silence,
    Status,
)
from tests.hub.client import run_client


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[LocalHub]:
    """A hub from which every request was served; one test asks for more than loopback."""
    with LocalHub(tmp_path / "hub") as hub:
        yield hub
    assert hub.unserved == []


def _ask(hub: LocalHub, path: str, method: str = "GET", seconds: float = 5) -> Any:
    """A bare request; the answer, with its body as `content`."""
    connection = http.client.HTTPConnection(hub.endpoint.removeprefix("http://"), timeout=seconds)
    with contextlib.closing(connection):
        connection.request(method, path)
        answer: Any = connection.getresponse()
        answer.content = answer.read()
        return answer


def test_a_status_comes_as_often_as_it_was_ordered(hub: LocalHub) -> None:
    hub.add("model", "org/model", {"a.txt": b"text", "b.txt": b"text"})
    hub.fail(r"a\.txt", 2, Status(429, retry_after=7))
    answers = [_ask(hub, f"/org/model/resolve/main/{name}.txt") for name in "abaa"]
    assert [answer.status for answer in answers] == [429, 200, 429, 200]
    assert answers[0].headers["Retry-After"] == "7"
    assert [seen.status for seen in hub.requests] == [answer.status for answer in answers]
    assert hub.faults.left == 0


@pytest.mark.parametrize(
    ("fault", "raised"),
    [
        (Cut("request"), http.client.RemoteDisconnected),
        (Cut("body"), http.client.IncompleteRead),
        (Silence(30), TimeoutError),
    ],
)
def test_a_connection_fails_once(hub: LocalHub, fault: Fault, raised: type[Exception]) -> None:
    hub.add("model", "org/model", {"a.txt": b"text"})
    hub.fail("resolve", 1, fault, method="GET")
    assert _ask(hub, "/org/model/resolve/main/a.txt", "HEAD").status == 200
    with pytest.raises(raised):
        _ask(hub, "/org/model/resolve/main/a.txt", seconds=0.3)
    assert _ask(hub, "/org/model/resolve/main/a.txt").content == b"text"


def _outcome(call: Callable[[], Any]) -> str:
    try:
        call()
    except Exception as error:
        response = getattr(error, "response", None)
        return type(error).__name__ if response is None else f"{type(error).__name__} {response.status_code}"
    return "done"


def _reach_out() -> list[str]:
    from huggingface_hub import HfApi

    with contextlib.closing(socket.socket()) as plain, pytest.raises(OSError, match=r"only loopback is allowed here$"):
        plain.connect(("192.0.2.1", 80))
    elsewhere = HfApi(endpoint="http://huggingface.test")
    calls = (lambda: HfApi().repo_exists("org/none"), lambda: elsewhere.model_info("org/none"))
    return list(map(_outcome, calls))


def test_nothing_but_loopback_is_reached(hub: LocalHub, tmp_path: Path) -> None:
    assert run_client(hub, tmp_path / "home", _reach_out) == ["done", "ConnectError"]
    assert sorted(hub.outside) == ["192.0.2.1", "huggingface.test"]


def test_what_is_not_served_is_recorded(tmp_path: Path) -> None:
    with LocalHub(tmp_path) as hub:
        assert _ask(hub, "/api/spaces/org/space").status == 501
        assert _ask(hub, "/storage/models/org/none/" + "0" * 64 + "/a").status == 500
    assert hub.unserved[0].path == "/api/spaces/org/space"
    assert len(hub.unserved) == 2


def test_a_stopped_hub_leaves_nothing_behind(tmp_path: Path) -> None:
    before, start = threading.active_count(), time.monotonic()
    with (
        LocalHub(tmp_path) as hub,
        contextlib.closing(socket.create_connection(("127.0.0.1", int(hub.endpoint.rpartition(":")[2])))) as idle,
    ):
        hub.fail("models", 1, Silence(60))
        idle.sendall(b"GET /api/models/org/model HTTP/1.1\r\n\r\n")
        while not hub.requests:
            time.sleep(0.01)
    assert threading.active_count() == before
    assert time.monotonic() - start < 30
