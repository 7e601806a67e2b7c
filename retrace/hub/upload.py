"""Upload a folder to a model repository of the hub: one commit with what changed, none if nothing did."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import HfApi, constants

from retrace.core.errors import InputError
from retrace.hub.checkpoint import Pin
from retrace.hub.session import hub_session, hub_token


@dataclass(frozen=True)
class Upload:
    """The commit that holds an uploaded folder."""

    pin: Pin
    is_new: bool  # false: the repository had all files already


def require_token() -> None:
    """Raise InputError where HF_TOKEN is not set."""
    if not hub_token():
        raise InputError(
            f"HF_TOKEN is not set; create a token with write access at {constants.ENDPOINT}/settings/tokens"
        )


def upload(
    folder: Path, repository: str, branch: str | None, private: bool, message: str, ours: Sequence[str]
) -> Upload:
    """Upload the files; the repository and the branch are created where they are missing.

    Files of the repository that are not in `folder` are deleted if one of the globs `ours` matches. Raises InputError
    where the hub refuses it, or the repository is public although it should be `private`.
    """
    hub = HfApi(token=hub_token())
    with hub_session(repository):
        hub.create_repo(repository, private=private or None, exist_ok=True)
        if private and not hub.model_info(repository).private:
            raise InputError(f"{repository}: the repository exists and is public; make it private at the hub first")
        if branch:
            hub.create_branch(repository, branch=branch, exist_ok=True)
        before = hub.model_info(repository, revision=branch).sha
        commit = hub.upload_folder(
            repo_id=repository, folder_path=folder, revision=branch, commit_message=message, delete_patterns=list(ours)
        )
    return Upload(Pin(repository, commit.oid), commit.oid != before)


def stored_digest(pin: Pin, path: str) -> str | None:
    """The SHA-256 of a large file at the hub; None where the file is missing or small.

    Raises InputError where the repository cannot be read.
    """
    with hub_session(str(pin)):
        found = HfApi(token=hub_token()).get_paths_info(pin.repository, [path], revision=pin.commit)
    large = getattr(found[0], "lfs", None) if found else None
    return large.sha256 if large else None
