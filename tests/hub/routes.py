"""Which function answers which address.

An endpoint is a function of a Call and of the named parts of its address, marked with `route`. HEAD is
answered as GET, less the body.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from tests.hub.access import Account, Store
from tests.hub.messages import Request, Response

PARTS = {
    "kind": "models|datasets",
    "name": "[^/]+/[^/]+",
    "revision": "[^/]+",  # a slash in it is quoted
    "path": ".+",
    "oid": "[0-9a-f]{64}",
}


@dataclass(frozen=True)
class Call:
    """A request with all that is needed to answer it."""

    request: Request
    account: Account | None
    store: Store
    endpoint: str  # the hub's own address
    storage: str  # that of its storage for large files


Endpoint = Callable[..., Response]
ROUTES: list[tuple[str, re.Pattern[str], Endpoint]] = []


def route(method: str, address: str) -> Callable[[Endpoint], Endpoint]:
    """Let a function answer `method` at `address`, where {parts} stand for what PARTS says."""
    pattern = re.sub(r"\{(\w+)\}", lambda part: f"(?P<{part[1]}>{PARTS[part[1]]})", address.replace(".", r"\."))

    def register(endpoint: Endpoint) -> Endpoint:
        ROUTES.append((method, re.compile(pattern), endpoint))
        return endpoint

    return register


def find_endpoint(request: Request) -> tuple[Endpoint, dict[str, Any]] | None:
    """The endpoint for a request and the parts of its address, unquoted; None where the hub has none."""
    method = "GET" if request.method == "HEAD" else request.method
    for served, pattern, endpoint in ROUTES:
        match = pattern.fullmatch(request.path)
        if match and served == method:
            parts = {name: unquote(value) for name, value in match.groupdict().items()}
            if "kind" in parts:
                parts["kind"] = parts["kind"].removesuffix("s")
            return endpoint, parts
    return None
