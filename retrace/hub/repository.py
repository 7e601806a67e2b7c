"""Repositories of the Hugging Face Hub: fetched once at a commit and compared with the hub's checksums; uploaded."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from huggingface_hub import HfApi, constants, get_cached_repo_tree, snapshot_download
from huggingface_hub.errors import CachedRepoTreeNotFoundError, LocalEntryNotFoundError

from retrace.core.errors import InputError
from retrace.hub.checkpoint import Pin
from retrace.hub.session import hub_session, hub_token

Kind = Literal["model", "dataset"]


def fetch(pin: Pin, kind: Kind, patterns: Sequence[str]) -> Path:
    """Fetch the files that match the globs; returns their folder, which does not exist where none match.

    Nothing is requested if all of them were fetched before. Raises InputError where they cannot be fetched, or their
    checksums are not those of the hub.
    """
    with hub_session(str(pin)):
        with suppress(CachedRepoTreeNotFoundError, LocalEntryNotFoundError):
            listing(pin, kind)  # another client may have fetched some of the files alone
            return _snapshot(pin, kind, patterns, local=True)
        folder = _snapshot(pin, kind, patterns, local=False)
        listing(pin, kind)
        if not folder.is_dir():  # no file matches, and none was fetched before
            return folder
        mismatches = _api().verify_repo_checksums(pin.repository, repo_type=kind, revision=pin.commit).mismatches
    for wrong in mismatches:
        (folder / wrong["path"]).resolve().unlink()
        (folder / wrong["path"]).unlink(missing_ok=True)
    if mismatches:
        wrong = mismatches[0]
        raise InputError(
            f"{pin}: {wrong['path']} came with the {wrong['algorithm']} {wrong['actual']}, "
            f"expected {wrong['expected']}; it was removed, run again to fetch it anew"
        )
    return folder


def listing(pin: Pin, kind: Kind) -> list[str]:
    """The names of all files of a repository of which some were fetched before; nothing is requested.

    Raises CachedRepoTreeNotFoundError where they are not known.
    """
    return [file.path for file in get_cached_repo_tree(pin.repository, repo_type=kind, revision=pin.commit)]


def _snapshot(pin: Pin, kind: Kind, patterns: Sequence[str], local: bool) -> Path:
    found = snapshot_download(
        pin.repository, repo_type=kind, revision=pin.commit, allow_patterns=list(patterns), token=hub_token(),
        local_files_only=local,
    )  # fmt: skip
    return Path(found)


def _api() -> HfApi:
    return HfApi(token=hub_token())


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
    hub = _api()
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
        found = _api().get_paths_info(pin.repository, [path], revision=pin.commit)
    large = getattr(found[0], "lfs", None) if found else None
    return large.sha256 if large else None
