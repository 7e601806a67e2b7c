"""Requests to the hub."""

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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Status, expected: float
) -> None:
    waits: list[float] = []
    with LocalHub(tmp_path) as hub, repository.RetryingClient() as client:
        hub.add("model", "org/name", {"a.txt": b"text"})
        hub.fail("api", 1, fault)
        monkeypatch.setattr(repository.time, "sleep", waits.append)
        assert client.get(f"{hub.endpoint}/api/models/org/name").status_code == 200
    assert waits == [expected]


def test_a_request_without_a_timeout_has_the_hubs(tmp_path: Path) -> None:
    """Which HF_HUB_DOWNLOAD_TIMEOUT sets; huggingface_hub gives none to most requests, such as a commit."""
    with LocalHub(tmp_path) as hub, repository.RetryingClient() as client:
        hub.add("model", "org/name", {"a.txt": b"text"})
        request = client.get(f"{hub.endpoint}/api/models/org/name").request
    assert set(request.extensions["timeout"].values()) == {repository.constants.HF_HUB_DOWNLOAD_TIMEOUT}
