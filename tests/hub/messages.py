"""What goes over the wire: requests, responses, and refusals with the hub's error codes."""

import json
from dataclasses import dataclass, field
from email.message import Message
from functools import cached_property
from typing import Any
from urllib.parse import parse_qs, unquote


@dataclass(frozen=True)
class Request:
    """A request as it came, its body read."""

    method: str
    path: str  # still quoted, without the query
    query: str
    headers: Message
    body: bytes

    @property
    def token(self) -> str | None:
        """The token that came with it."""
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        return token if scheme == "Bearer" else None

    @cached_property
    def parameters(self) -> dict[str, list[str]]:
        """The query's values by name."""
        return parse_qs(self.query)

    def asks(self, name: str) -> bool:
        """Whether a flag is set in the query."""
        return self.parameters.get(name, [""])[-1].lower() in ("1", "true")

    def json(self) -> dict[str, Any]:
        """The body as json; nothing where it is empty."""
        return json.loads(self.body or b"{}")

    def form(self) -> dict[str, list[str]]:
        """The body as a web form."""
        return parse_qs(self.body.decode())

    @property
    def address(self) -> str:
        """The path as a reader would write it."""
        return unquote(self.path)


@dataclass
class Response:
    """An answer. A HEAD request gets the same one without the body."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


def json_response(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """An answer in json; what json does not know, such as a date in a card, is written out."""
    return Response(
        status, json.dumps(value, default=str).encode(), {"Content-Type": "application/json", **(headers or {})}
    )


class HubError(Exception):
    """An error that the client gets.

    `code` is the header X-Error-Code, from which huggingface_hub chooses its exception: RepoNotFound,
    RevisionNotFound, EntryNotFound or GatedRepo. Without one it raises a plain HfHubHTTPError.
    """

    def __init__(self, status: int, message: str, code: str | None = None, **headers: str) -> None:
        super().__init__(message)
        named = {"X-Error-Message": message, **({"X-Error-Code": code} if code else {})}
        named |= {name.replace("_", "-"): value for name, value in headers.items()}
        self.response = json_response({"error": message}, status, named)
