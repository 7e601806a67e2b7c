"""The local hub: two HTTP servers on loopback, one for the hub and one for its storage of large files.

They are two as the real ones are: a client must find the way from one to the other, and leave its token behind.
"""

import os
import threading
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.hub import reading, writing  # noqa: F401  (their endpoints are registered so)
from tests.hub.connections import Server
from tests.hub.faults import Fault, FaultPlan, Status
from tests.hub.messages import HubError, Request, Response, json_response
from tests.hub.repository import File, Kind, Repository, is_large
from tests.hub.routes import Call, account_of, find_endpoint

LOOPBACK = Path(__file__).parent / "loopback"  # a folder for PYTHONPATH, see sitecustomize.py in it


@dataclass(frozen=True)
class Seen:
    """A request as it is recorded."""

    method: str
    path: str  # unquoted, without the query
    status: int | None  # none where the connection was closed without an answer
    range: str | None
    token: bool  # whether one came with it
    served: bool  # false: the hub has no such endpoint, or failed


class LocalHub:
    """A hub for tests, which runs while its context does; `folder` is for its own notes.

    with LocalHub(tmp_path / "hub") as hub:
        commit = hub.add("model", "org/name", {"config.json": b"{}"})
        hub.fail("config.json", 2, Status(503))
        subprocess.run(command, env=hub.environment(tmp_path / "home"))
    assert hub.unserved == [] and hub.outside == []
    """

    def __init__(self, folder: Path) -> None:
        self.repositories: dict[tuple[Kind, str], Repository] = {}
        self.faults = FaultPlan()
        self.requests: list[Seen] = []
        folder.mkdir(parents=True, exist_ok=True)
        self._log = folder.resolve() / "outside.log"
        self._lock = threading.Lock()

    def __enter__(self) -> "LocalHub":
        self._servers = [Server(self._serve), Server(self._serve)]
        self.endpoint, self.storage = (server.address for server in self._servers)
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._servers:
            server.stop()

    def add(
        self,
        kind: Kind,
        name: str,
        content: Mapping[str, bytes] | Path,
        private: bool = False,
        gated: bool = False,
        message: str = "Upload",
        commit: str | None = None,
    ) -> str:
        """Put files, or those of a folder, into a repository, made if it is not there; the commit that has them.

        `commit` is what it is to be called, 40 hex digits: for what params.yaml pins on the real hub.
        """
        if isinstance(content, Path):
            paths = sorted(path for path in content.rglob("*") if path.is_file())
            content = {path.relative_to(content).as_posix(): path.read_bytes() for path in paths}
        with self._lock:
            repository = self.repositories.setdefault((kind, name), Repository(kind, name, private, gated))
            added = {path: File(data, is_large(path, len(data))) for path, data in content.items()}
            repository.objects |= {file.sha256: file.content for file in added.values() if file.large}
            return repository.commit("main", message, "", {**repository.at("main").files, **added}, commit).oid

    def files(self, kind: Kind, name: str, revision: str = "main") -> dict[str, bytes]:
        """What a repository holds at a revision. Raises KeyError where there is none."""
        files = self.repositories[kind, name].at(revision).files
        return {path: file.content for path, file in files.items()}

    def commits(self, kind: Kind, name: str, revision: str = "main") -> list[str]:
        """The commits that led to a revision, the last first."""
        return [commit.oid for commit in self.repositories[kind, name].history(revision)]

    def fail(self, pattern: str, times: int, fault: Fault, method: str | None = None) -> None:
        """Let the next requests fail whose path `pattern` is found in; see faults.py."""
        self.faults.add(pattern, times, fault, method)

    @property
    def unserved(self) -> list[Seen]:
        """The requests that the hub could not serve; a test asserts that there are none."""
        return [seen for seen in self.requests if not seen.served]

    @property
    def outside(self) -> list[str]:
        """The hosts beyond loopback that processes with `environment` tried to reach."""
        return self._log.read_text().splitlines() if self._log.is_file() else []

    def environment(self, home: Path, token: str | None = None) -> dict[str, str]:
        """The environment of a process that knows no hub but this one and has its caches in `home`."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("HF_", "HUGGING")) and not name.lower().endswith("_proxy")
        }
        path = os.pathsep.join(filter(None, [str(LOOPBACK), os.environ.get("PYTHONPATH", "")]))
        return {
            **kept,
            "HF_ENDPOINT": self.endpoint,
            "HF_HOME": str(home),
            "HF_HUB_DISABLE_XET": "1",  # transfers by plain HTTP
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_UPDATE_DOWNLOAD_COUNTS": "0",
            "OUTSIDE_LOG": str(self._log),
            "PYTHONPATH": path,
            **({"HF_TOKEN": token} if token else {}),
        }

    def _serve(self, request: Request) -> tuple[Response | None, Fault | None]:
        """Answer a request, or let it fail as was asked for, and note it."""
        response, served = None, True
        fault = self.faults.take(request, None)
        if fault is None:
            response, served = self._answer(request)
            fault = self.faults.take(request, response)
        elif isinstance(fault, Status):
            response = fault.response()
        status, part = response and response.status, request.headers.get("Range")
        self.requests.append(Seen(request.method, request.address, status, part, request.token is not None, served))
        return response, fault

    def _answer(self, request: Request) -> tuple[Response, bool]:
        """The response of the request's endpoint, and whether it has one."""
        found = find_endpoint(request)
        if found is None:
            return json_response({"error": "the local hub has no such endpoint"}, 501), False
        endpoint, parts = found
        try:
            with self._lock:
                stored = request.path.startswith("/storage/")  # signed addresses, without an account
                account = None if stored else account_of(request.token)
                return endpoint(Call(request, account, self.repositories, self.endpoint, self.storage), **parts), True
        except HubError as error:
            return error.response, error.response.status != 501
        except Exception:  # a defect of this hub; the client is told, and the test sees it as unserved
            return json_response({"error": traceback.format_exc()}, 500), False
