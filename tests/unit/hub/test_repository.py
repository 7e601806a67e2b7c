"""Requests to the hub."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from retrace.hub import repository
from tests.hub import LocalHub, Status


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Status(429, limited=55), 56.0),
        (Status(429, limited=4000), repository.LONGEST_WAIT),
        (Status(503, retry_after=7), 7.0),
        (Status(503), repository.WAITS[0]),
    ],
    ids=str,
)
def test_as_long_as_the_hub_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], fault: Status, expected: float
) -> None:
    waits: list[float] = []
    with LocalHub(tmp_path) as hub, repository.RetryingClient() as client:
        hub.add("model", "org/name", {"a.txt": b"text"})
        hub.fail("api", 1, fault)
        monkeypatch.setattr(repository.time, "sleep", waits.append)
        assert client.get(f"{hub.endpoint}/api/models/org/name").status_code == 200
    assert waits == [expected]
    is_long = expected > max(repository.WAITS)  # so that it looks like a hang
    assert capsys.readouterr().err == (f"127.0.0.1 asks to wait {expected:.0f} seconds\n" if is_long else "")


class _Reset(repository.httpx.SyncByteStream):
    def __iter__(self) -> Iterator[bytes]:
        yield b"half"
        raise repository.httpx.ReadError("[Errno 104] Connection reset by peer")


def test_a_connection_reset_within_a_file_is_one_that_can_be_resumed() -> None:
    transport = repository.httpx.MockTransport(lambda _: repository.httpx.Response(200, stream=_Reset()))
    with (
        repository.RetryingClient(transport=transport) as client,
        client.stream("GET", "http://hub") as response,
        pytest.raises(repository.httpx.RemoteProtocolError, match="reset by peer"),
    ):
        list(response.iter_bytes())


def test_a_request_without_a_timeout_has_the_hubs(tmp_path: Path) -> None:
    """Which HF_HUB_DOWNLOAD_TIMEOUT sets; huggingface_hub gives none to most requests, such as a commit."""
    with LocalHub(tmp_path) as hub, repository.RetryingClient() as client:
        hub.add("model", "org/name", {"a.txt": b"text"})
        request = client.get(f"{hub.endpoint}/api/models/org/name").request
    assert set(request.extensions["timeout"].values()) == {repository.constants.HF_HUB_DOWNLOAD_TIMEOUT}
