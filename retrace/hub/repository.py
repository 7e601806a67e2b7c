"""Repositories of the Hugging Face Hub, pinned to a commit: fetched once, compared with the hub's checksums, kept."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from huggingface_hub import HfApi, get_cached_repo_tree, snapshot_download
from huggingface_hub.errors import CachedRepoTreeNotFoundError, LocalEntryNotFoundError

from retrace.core.errors import InputError
from retrace.hub.checkpoint import Pin
from retrace.hub.session import hub_session, hub_token


def fetch(pin: Pin, kind: Literal["model", "dataset"], patterns: Sequence[str]) -> Path:
    """Fetch the files that match the globs; returns their folder, which does not exist where none match.

    Nothing is requested if all of them were fetched before. Raises InputError where they cannot be fetched, or their
    checksums are not those of the hub.
    """
    with hub_session(str(pin)):
        with suppress(CachedRepoTreeNotFoundError, LocalEntryNotFoundError):
            _require_listing(pin, kind)
            return _snapshot(pin, kind, patterns, local=True)
        folder = _snapshot(pin, kind, patterns, local=False)
        _require_listing(pin, kind)
        if not folder.is_dir():  # no file matches, and none was fetched before
            return folder
        checked = HfApi(token=hub_token()).verify_repo_checksums(pin.repository, repo_type=kind, revision=pin.commit)
    for wrong in checked.mismatches:
        (folder / wrong["path"]).resolve().unlink()
        (folder / wrong["path"]).unlink(missing_ok=True)
    if checked.mismatches:
        wrong = checked.mismatches[0]
        raise InputError(
            f"{pin}: {wrong['path']} came with the {wrong['algorithm']} {wrong['actual']}, "
            f"expected {wrong['expected']}; it was removed, run again to fetch it anew"
        )
    return folder


def listing(pin: Pin, kind: Literal["model", "dataset"]) -> list[str]:
    """The names of all files of a repository of which some were fetched before; nothing is requested."""
    return [file.path for file in get_cached_repo_tree(pin.repository, repo_type=kind, revision=pin.commit)]


def _require_listing(pin: Pin, kind: str) -> None:
    """Raise CachedRepoTreeNotFoundError unless all names are known: another client may have fetched only some files."""
    get_cached_repo_tree(pin.repository, repo_type=kind, revision=pin.commit)


def _snapshot(pin: Pin, kind: str, patterns: Sequence[str], local: bool) -> Path:
    return Path(
        snapshot_download(
            pin.repository, repo_type=kind, revision=pin.commit, allow_patterns=list(patterns),
            token=hub_token(), local_files_only=local,
        )
    )  # fmt: skip
