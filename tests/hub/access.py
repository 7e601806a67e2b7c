"""Who may do what, and how the hub says no.

It never tells a stranger that a private repository exists. Without a token the answer is 401 for a
missing and for a private repository alike; with a token that does not reach it, 404.
"""

from dataclasses import dataclass, field

from tests.hub.messages import HubError
from tests.hub.repository import Commit, Kind, Repository


@dataclass(frozen=True)
class Account:
    """Whom a token belongs to."""

    user: str
    writes: bool  # the token's role: write, or read alone
    member: bool  # of every organisation: sees what is private, passes every gate


MEMBER, STRANGER = "local-member", "local-stranger"
WRITE_TOKEN, READ_TOKEN, STRANGER_TOKEN = "hf_localWrite", "hf_localRead", "hf_localStranger"
ACCOUNTS = {
    WRITE_TOKEN: Account(MEMBER, writes=True, member=True),
    READ_TOKEN: Account(MEMBER, writes=False, member=True),
    STRANGER_TOKEN: Account(STRANGER, writes=True, member=False),
}


@dataclass
class Store:
    """All that the hub holds."""

    repositories: dict[tuple[Kind, str], Repository] = field(default_factory=dict)

    def visible(self, account: Account | None, kind: Kind, name: str) -> Repository:
        """A repository that the account may know of."""
        found = self.repositories.get((kind, name))
        if found and not (found.private and not (account and account.member)):
            return found
        if account is None:
            raise not_authenticated("RepoNotFound")
        raise HubError(404, "Repository not found", "RepoNotFound")

    def writable(self, account: Account | None, kind: Kind, name: str) -> Repository:
        """A repository that the account may change."""
        found = self.visible(account, kind, name)
        require_writer(account, name)
        return found


def account_of(token: str | None) -> Account | None:
    """The account of a token, none without a token; a token that is not known is refused whatever is asked."""
    if token is None:
        return None
    if token not in ACCOUNTS:
        raise HubError(401, "Invalid credentials in Authorization header")
    return ACCOUNTS[token]


def require_writer(account: Account | None, name: str) -> None:
    """Only a writing token of a member, or of the user whose name the repository bears, changes things."""
    if account is None:
        raise not_authenticated("RepoNotFound")
    if not account.writes or not (account.member or name.startswith(f"{account.user}/")):
        raise HubError(403, "Forbidden: you don't have the rights to write to this namespace")


def require_past_gate(account: Account | None, repository: Repository) -> None:
    """A gated repository is listed for everyone, and its files are for those whom its owner let in."""
    if not repository.gated or (account and account.member):
        return
    restricted = f"Access to {repository.kind} {repository.name} is restricted"
    if account is None:
        raise HubError(401, f"{restricted}. You must be authenticated to access it.", "GatedRepo")
    raise HubError(403, f"{restricted} and you are not in the authorized list.", "GatedRepo")


def commit_at(repository: Repository, revision: str) -> Commit:
    """The commit of a revision that a client names."""
    try:
        return repository.at(revision)
    except KeyError:
        raise HubError(404, f"Invalid rev id: {revision}", "RevisionNotFound") from None


def not_authenticated(code: str | None = None) -> HubError:
    """The answer without a token.

    The real hub sends no code with it: huggingface_hub takes a 401 of an https address with a repository
    in it for RepoNotFound. Over http it does not, so the code is sent here to the same effect.
    """
    return HubError(401, "Invalid username or password.", code)
