"""Which function answers which address, and who may do what.

An endpoint is a function of a Call and of the named parts of its address, marked with `route`. HEAD is answered as GET,
less the body. The hub never tells a stranger that a private repository exists: without a token the answer is 401 for a
missing and for a private repository alike; with a token that does not reach it, 404.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from tests.hub.messages import HubError, Request, Response
from tests.hub.repository import Commit, Kind, Repository

WRITE_TOKEN, READ_TOKEN, STRANGER_TOKEN = "hf_localWrite", "hf_localRead", "hf_localStranger"
PARTS = {
    "kind": "models|datasets",
    "name": "[^/]+/[^/]+",
    "revision": "[^/]+",  # a slash in it is quoted
    "path": ".+",
    "oid": "[0-9a-f]{64}",
}


@dataclass(frozen=True)
class Account:
    """Whom a token belongs to."""

    user: str
    writes: bool  # the token's role: write, or read alone
    member: bool  # of every organisation: sees what is private, passes every gate


ACCOUNTS = {
    WRITE_TOKEN: Account("local-member", writes=True, member=True),
    READ_TOKEN: Account("local-member", writes=False, member=True),
    STRANGER_TOKEN: Account("local-stranger", writes=True, member=False),
}


@dataclass(frozen=True)
class Call:
    """A request with all that is needed to answer it."""

    request: Request
    account: Account | None
    repositories: dict[tuple[Kind, str], Repository]  # all that the hub holds
    endpoint: str  # the hub's own address
    storage: str  # that of its storage for large files

    def visible(self, kind: Kind, name: str) -> Repository:
        """A repository that the account may know of."""
        found = self.repositories.get((kind, name))
        if found and not (found.private and not (self.account and self.account.member)):
            return found
        if self.account is None:
            raise not_authenticated()
        raise HubError(404, "Repository not found", "RepoNotFound")

    def writable(self, kind: Kind, name: str) -> Repository:
        """A repository that the account may change."""
        found = self.visible(kind, name)
        self.require_writer(name)
        return found

    def require_writer(self, name: str) -> None:
        """Only a writing token of a member, or of the user whose name the repository bears, changes things."""
        if self.account is None:
            raise not_authenticated()
        if not self.account.writes or not (self.account.member or name.startswith(f"{self.account.user}/")):
            raise HubError(403, "Forbidden: you don't have the rights to write to this namespace")

    def require_past_gate(self, repository: Repository) -> None:
        """A gated repository is listed for everyone, and its files are for those whom its owner let in."""
        if not repository.gated or (self.account and self.account.member):
            return
        restricted = f"Access to {repository.kind} {repository.name} is restricted"
        if self.account is None:
            raise HubError(401, f"{restricted}. You must be authenticated to access it.", "GatedRepo")
        raise HubError(403, f"{restricted} and you are not in the authorized list.", "GatedRepo")


Endpoint = Callable[..., Response]
ROUTES: list[tuple[str, re.Pattern[str], Endpoint]] = []


def account_of(token: str | None) -> Account | None:
    """The account of a token, none without a token; a token that is not known is refused whatever is requested."""
    if token is not None and token not in ACCOUNTS:
        raise HubError(401, "Invalid credentials in Authorization header")
    return None if token is None else ACCOUNTS[token]


def commit_at(repository: Repository, revision: str) -> Commit:
    """The commit of a revision that a client names."""
    try:
        return repository.at(revision)
    except KeyError:
        raise HubError(404, f"Invalid rev id: {revision}", "RevisionNotFound") from None


def not_authenticated() -> HubError:
    """The answer without a token.

    The real hub sends no code with it: huggingface_hub takes a 401 of an https address with a repository in it for
    RepoNotFound. Over http it does not, so the code is sent here to the same effect.
    """
    return HubError(401, "Invalid username or password.", "RepoNotFound")


def route(method: str, *addresses: str) -> Callable[[Endpoint], Endpoint]:
    """Let a function answer `method` at addresses, where {parts} stand for what PARTS says."""

    def register(endpoint: Endpoint) -> Endpoint:
        for address in addresses:
            parts = re.sub(r"\{(\w+)\}", lambda part: f"(?P<{part[1]}>{PARTS[part[1]]})", address.replace(".", r"\."))
            ROUTES.append((method, re.compile(parts), endpoint))
        return endpoint

    return register


def find_endpoint(request: Request) -> tuple[Endpoint, dict[str, Any]] | None:
    """The endpoint for a request and the parts of its address, unquoted; None where the hub has none."""
    method = "GET" if request.method == "HEAD" else request.method
    for served, pattern, endpoint in ROUTES:
        match = pattern.fullmatch(request.path)
        if match and served == method:
            parts = {name: unquote(value) for name, value in match.groupdict().items()}
            return endpoint, parts | ({"kind": parts["kind"].removesuffix("s")} if "kind" in parts else {})
    return None
