"""Which function answers which address, and who may do what.

An endpoint is a function of a Call and of the named parts of its address but for `kind` and `name`, marked with
`route`. HEAD is answered as GET, less the body. The hub never tells a stranger that a private repository exists:
without a token the answer is 401 for a missing and for a private repository alike; with a token that does not reach
it, 404.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from aiohttp import web

from tests.hub.repository import Commit, Kind, Repository

WRITE_TOKEN, READ_TOKEN, STRANGER_TOKEN = "hf_localWrite", "hf_localRead", "hf_localStranger"
NAME = "{name:[^/]+/[^/]+}"
REPOSITORY = "{kind:models|datasets}/" + NAME  # an address begins with it, after something else


MEMBER, STRANGER = "local-member", "local-stranger"  # a member belongs to every organisation and may read everything
ACCOUNTS = {WRITE_TOKEN: MEMBER, READ_TOKEN: MEMBER, STRANGER_TOKEN: STRANGER}


class HubError(Exception):
    """An error that the client gets.

    `code` is the header X-Error-Code, from which huggingface_hub chooses its exception: RepoNotFound,
    RevisionNotFound, EntryNotFound or GatedRepo. Without one it raises a plain HfHubHTTPError.
    """

    def __init__(self, status: int, message: str, code: str = "", **headers: str) -> None:
        super().__init__(message)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        named |= {"X-Error-Message": message, **({"X-Error-Code": code} if code else {})}
        self.response = json_response({"error": message}, status=status, headers=named)


# An answer in json; what json does not know, such as a date in a card, is written out.
json_response = partial(web.json_response, dumps=partial(json.dumps, default=str))


@dataclass(frozen=True)
class Call:
    """A request with all that is needed to answer it."""

    request: web.Request
    body: bytes
    repositories: dict[tuple[Kind, str], Repository]  # all that the hub holds
    endpoint: str  # the hub's own address
    storage: str  # that of its storage for large files

    @property
    def token(self) -> str | None:
        """The token that came with it."""
        return self.request.headers.get("Authorization", "").removeprefix("Bearer ") or None

    @property
    def user(self) -> str | None:
        """The account of the token; None without one."""
        return ACCOUNTS[self.token] if self.token else None

    @property
    def named(self) -> tuple[Kind, str]:
        """The repository that the address names."""
        parts = self.request.match_info
        return "dataset" if parts.get("kind") == "datasets" else "model", parts["name"]

    def json(self) -> dict[str, Any]:
        """The body as json; nothing if it is empty."""
        return json.loads(self.body or b"{}")

    def visible(self) -> Repository:
        """The repository, where the account may know of it."""
        found, user = self.repositories.get(self.named), self.user
        if found and (user == MEMBER or not found.private):
            return found
        if user:
            raise HubError(404, "Repository not found", "RepoNotFound")
        # The real hub sends no code with it: huggingface_hub takes a 401 of an https address with a repository in it
        # for RepoNotFound. Over http it does not, so the code is sent here to the same effect.
        raise HubError(401, "Invalid username or password.", "RepoNotFound")

    def writable(self) -> Repository:
        """The repository, where the account may change it."""
        found = self.visible()
        self.require_writer(found.name)
        return found

    def require_writer(self, name: str) -> None:
        """Only a token with write access, of a member or of the user who owns the repository, may change it."""
        if self.token == READ_TOKEN or not (self.user == MEMBER or name.startswith(f"{self.user}/")):
            raise HubError(403, "Forbidden: you don't have the rights to write to this namespace")

    def require_past_gate(self, repository: Repository) -> None:
        """A gated repository is listed for everyone, and its files are for those whom its owner let in."""
        if repository.gated and self.user != MEMBER:
            status, who = (403, "are not in the list") if self.user else (401, "must be authenticated")
            said = f"Access to {repository.kind} {repository.name} is restricted. You {who} to access it."
            raise HubError(status, said, "GatedRepo")

    def commit(self, revision: str) -> Commit:
        """The commit of a revision that a client names, of a repository that it may know of."""
        return commit_at(self.visible(), revision)


Endpoint = Callable[..., web.Response]
ROUTES: list[tuple[str, str, Endpoint]] = []


def commit_at(repository: Repository, revision: str) -> Commit:
    """The commit of a revision that a client names."""
    try:
        return repository.at(revision)
    except KeyError:
        raise HubError(404, f"Invalid rev id: {revision}", "RevisionNotFound") from None


def route(method: Literal["get", "post", "put"], *addresses: str) -> Callable[[Endpoint], Endpoint]:
    """Let a function answer `method` at addresses as aiohttp writes them; a slash in a part of them is quoted."""

    def register(endpoint: Endpoint) -> Endpoint:
        ROUTES.extend((method, address, endpoint) for address in addresses)
        return endpoint

    return register
