"""The local hub: two addresses on loopback, one for the hub and one for its storage of large files.

There are two, as on the real hub: a client must follow the redirect from one to the other without sending its token.
"""

import asyncio
import os
import threading
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.hub import reading, writing  # noqa: F401  (their endpoints are registered so)
from tests.hub.faults import Cut, Fault, FaultPlan, Silence, Status, WrongBytes
from tests.hub.repository import File, Kind, Repository, is_large
from tests.hub.routes import ROUTES, Call, Endpoint, HubError, json_response

LOOPBACK = Path(__file__).parent / "loopback"  # a folder for PYTHONPATH, see sitecustomize.py in it
LAST = 0.1  # seconds for what is being served when the hub stops


@dataclass(frozen=True)
class Seen:
    """A request as it is recorded."""

    method: str
    path: str  # unquoted, without the query
    status: int | None  # none if the connection was closed without an answer
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
        self.fail = self.faults.add
        self.requests: list[Seen] = []
        folder.mkdir(parents=True, exist_ok=True)
        self._log = folder.resolve() / "outside.log"
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> "LocalHub":
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()
        return self

    async def _start(self) -> None:
        app = web.Application(client_max_size=0)
        for method, address, endpoint in ROUTES:
            getattr(app.router, f"add_{method}")(address, partial(self._serve, endpoint))
        app.router.add_route("*", "/{rest:.*}", partial(self._serve, _nowhere))
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=LAST)
        await self._runner.setup()
        for _ in range(2):
            await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.endpoint, self.storage = (f"http://{host}:{port}" for host, port in self._runner.addresses)

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def add(
        self, kind: Kind, name: str, content: Mapping[str, bytes] | Path, gated: bool = False, commit: str | None = None
    ) -> str:
        """Put files, or those of a folder, into a repository, made if it is not there; the commit that has them.

        `commit` is what it is to be called, 40 hex digits: for what params.yaml pins on the real hub.
        """
        if isinstance(content, Path):
            paths = sorted(path for path in content.rglob("*") if path.is_file())
            content = {path.relative_to(content).as_posix(): path.read_bytes() for path in paths}
        repository = self.repositories.setdefault((kind, name), Repository(kind, name, gated=gated))
        added = {path: File(data, is_large(path, len(data))) for path, data in content.items()}
        repository.objects |= {file.sha256: file.content for file in added.values() if file.large}
        return repository.commit("main", {**repository.at("main").files, **added}, commit).oid

    def files(self, kind: Kind, name: str, revision: str = "main") -> dict[str, bytes]:
        """What a repository holds at a revision. Raises KeyError if there is none."""
        files = self.repositories[kind, name].at(revision).files
        return {path: file.content for path, file in files.items()}

    def commits(self, kind: Kind, name: str) -> list[str]:
        """The commits of the main branch, the last first."""
        return self.repositories[kind, name].history("main")

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
        theirs = {name for name in os.environ if name.startswith(("HF_", "HUGGING")) or name.lower().endswith("_proxy")}
        return {
            **{name: value for name, value in os.environ.items() if name not in theirs},
            "HF_ENDPOINT": self.endpoint,
            "HF_HOME": str(home),
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_UPDATE_DOWNLOAD_COUNTS": "0",
            "OUTSIDE_LOG": str(self._log),
            "PYTHONPATH": os.pathsep.join(filter(None, [str(LOOPBACK), os.environ.get("PYTHONPATH", "")])),
            **({"HF_TOKEN": token} if token else {}),
        }

    async def _serve(self, endpoint: Endpoint, request: web.Request) -> web.StreamResponse:
        """Answer a request, or let it fail as ordered, and record it."""
        call = Call(request, await request.read(), self.repositories, self.endpoint, self.storage)
        response, served = None, True
        fault: Fault | None = self.faults.take(request, None)
        if isinstance(fault, Status):
            headers = {} if fault.retry_after is None else {"Retry_After": str(fault.retry_after)}
            headers |= {} if fault.limited is None else {"RateLimit": f'"api";r=0;t={fault.limited}'}
            response = HubError(fault.status, "fault on demand", **headers).response
        elif fault is None:
            response, served = _answer(endpoint, call)
            fault = self.faults.take(request, response)
        status = None if response is None else response.status
        self.requests.append(Seen(request.method, request.path, status, call.token is not None, served))
        if isinstance(fault, Silence):
            await asyncio.sleep(fault.seconds)
        if response is None:
            return _closed(request, web.Response())
        body: Any = response.body
        if isinstance(fault, WrongBytes):
            response.body = bytes(byte ^ 0xFF for byte in body)
        if isinstance(fault, Cut):
            half = web.StreamResponse(headers={**response.headers, "Content-Length": str(len(body))})
            await half.prepare(request)
            await half.write(body[: len(body) // 2])
            return _closed(request, half)
        return response


def _closed(request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
    """The response of a request whose connection is closed."""
    assert request.transport
    request.transport.close()
    return response


def _answer(endpoint: Endpoint, call: Call) -> tuple[web.Response, bool]:
    """The response of an endpoint, and whether it has served."""
    parts = {name: of for name, of in call.request.match_info.items() if name not in ("kind", "name")}
    try:
        return endpoint(call, **parts), True
    except HubError as error:
        return error.response, error.response.status != 501
    except Exception:  # a defect of this hub; the client is told, and the test sees it as unserved
        return json_response({"error": traceback.format_exc()}, status=500), False


def _nowhere(call: Call, rest: str) -> web.Response:
    raise HubError(501, f"the local hub has no such endpoint: {rest}")
