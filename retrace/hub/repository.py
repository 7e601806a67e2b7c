"""Repositories of the Hugging Face Hub: fetched once, at a commit, and verified by checksum; uploaded.

Requests are retried after transient faults, and errors end in one line. HF_ENDPOINT names another hub, HF_TOKEN opens
private and gated repositories, and with HF_HUB_OFFLINE=1 nothing is requested. A token stored elsewhere on the machine
is never sent.
"""

import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

from huggingface_hub import HfApi, constants, errors, get_cached_repo_tree, get_session, set_client_factory
from huggingface_hub.utils import disable_progress_bars, httpx, logging, parse_ratelimit_headers

from retrace.core.errors import FULL, InputError, first_line
from retrace.core.files import write_text
from retrace.hub.pins import Pin

Kind = Literal["model", "dataset"]
RETRYABLE = (408, 429, 500, 502, 503, 504)  # status codes after which the same request may succeed
BROKEN = (httpx.TimeoutException, httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError)
WAITS = (0.5, 1.0, 2.0)  # seconds between tries of one request; huggingface_hub retries downloads only
LONGEST_WAIT = 301.0  # seconds, even if the hub asks for a longer wait; its rate limits are for 300
NO_ADDRESS = "HF_ENDPOINT, or a proxy, is not an address"  # the error's own message may quote a password


class _Body(httpx.SyncByteStream):
    """A response's body, which raises after a reset connection what it raises after one that was closed.

    huggingface_hub resumes a download only after the latter.
    """

    def __init__(self, body: Any) -> None:
        self._body = body

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._body
        except httpx.ReadError as error:
            raise httpx.RemoteProtocolError(str(error)) from error

    def close(self) -> None:
        """Release the connection."""
        self._body.close()


class RetryingClient(httpx.Client):
    """A client that retries requests after transient faults, and has the hub's timeout where none is set."""

    def __init__(self, **options: Any) -> None:
        super().__init__(timeout=None, **options)  # httpx's own default is five seconds

    def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        """Send a request, retried as `_retried` says."""
        response = self._retried(request, **options)
        if not response.is_closed:  # its body is still to be read
            response.stream = _Body(response.stream)
        return response

    def _retried(self, request: httpx.Request, **options: Any) -> httpx.Response:
        """Send a request; retry it after RETRYABLE answers and BROKEN connections, as often as there are WAITS."""
        if not any((request.extensions.get("timeout") or {}).values()):  # huggingface_hub often sets none
            timeout = httpx.Timeout(constants.HF_HUB_DOWNLOAD_TIMEOUT)
            request.extensions = {**request.extensions, "timeout": timeout.as_dict()}
        # A streamed file cannot be sent again from here; huggingface_hub rewinds it and retries.
        if not isinstance(request.stream, httpx.ByteStream):
            return super().send(request, **options)
        for wait in WAITS:
            try:
                response = super().send(request, **options)
            except BROKEN:
                time.sleep(wait)
                continue
            if response.status_code not in RETRYABLE:
                return response
            response.close()
            pause = min(_asked_wait(response) or wait, LONGEST_WAIT)
            if pause > max(WAITS):
                print(f"{request.url.host} asks to wait {pause:.0f} seconds", file=sys.stderr, flush=True)
            time.sleep(pause)
        return super().send(request, **options)


def _asked_wait(response: httpx.Response) -> float | None:
    """The seconds that the hub asks to wait; the Hugging Face Hub says it in RateLimit, others in Retry-After."""
    limit = parse_ratelimit_headers(response.headers)
    if limit is not None and limit.remaining == 0:
        return limit.reset_in_seconds + 1.0  # as huggingface_hub does, since they are rounded
    asked = response.headers.get("Retry-After", "")
    return float(asked) if asked.isdecimal() else None


@contextmanager
def hub_session(about: str) -> Iterator[None]:
    """A context for requests to the hub.

    Raises InputError, which begins with `about`, if the hub or the network fails.
    """
    try:
        _set_client()
        yield
    except InputError:
        raise
    except Exception as error:
        causes: list[BaseException] = [error]
        while (inner := causes[-1].__cause__ or causes[-1].__context__) is not None and inner not in causes:
            causes.append(inner)
        messages = [message for cause in reversed(causes) if (message := _message(cause))]
        if not messages:
            raise
        raise InputError(f"{about}: {messages[0]}") from error  # the innermost is closest to the cause


def hub_token() -> str | Literal[False]:
    """The token in HF_TOKEN; False is huggingface_hub's value for no token.

    Raises InputError if it has characters that no request can carry.
    """
    token = os.environ.get("HF_TOKEN", "").strip()
    if not (token.isascii() and token.isprintable()):
        raise InputError("HF_TOKEN: the token is not plain text; copy it again")
    return token or False


@cache
def _set_client() -> None:
    # Xet's transfers bypass RetryingClient, and `_message` does not know their errors.
    constants.HF_HUB_DISABLE_XET = True
    hooks = get_session().event_hooks  # they enforce HF_HUB_OFFLINE
    set_client_factory(lambda: RetryingClient(event_hooks=hooks, follow_redirects=True))
    logging.set_verbosity_error()  # no warnings about retries
    if not sys.stderr.isatty():
        disable_progress_bars()


def _message(error: BaseException) -> str:
    """What went wrong; empty unless the hub or the network failed."""
    hub = constants.ENDPOINT
    match error:
        case errors.GatedRepoError():
            return f"the repository is gated; accept its terms at {hub} and set HF_TOKEN"
        case errors.RepositoryNotFoundError():
            return f"no such repository at {hub}, or it is private and HF_TOKEN does not open it"
        case errors.RevisionNotFoundError():
            return "the repository has no such commit"
        case errors.OfflineModeIsEnabled() | errors.CachedRepoTreeNotFoundError():
            return "not fetched before, and HF_HUB_OFFLINE forbids fetching it now"
        case errors.LocalEntryNotFoundError():
            return ""  # it stands for its cause
        case errors.EntryNotFoundError():
            return f"the repository has no such file: {first_line(str(error).split('url:')[-1])}"
        case errors.HfHubHTTPError() if error.response.status_code in (401, 403):
            refused = "HF_TOKEN" if hub_token() else "a request without HF_TOKEN"
            return f"{hub} refused {refused} ({error.response.status_code}: {first_line(error.server_message or '')})"
        case errors.HfHubHTTPError():
            answer = error.response
            return f"{hub} answered {answer.status_code} to {answer.request.method} {answer.url.path}"
        case ConnectionError() if error.errno is None:  # of `datasets`, which hides its cause
            return first_line(error)
        case OSError() if str(error).startswith(("Consistency check failed", "Not enough disk space")):
            return first_line(error)  # of huggingface_hub and `datasets`, without a number
        case ImportError() if "SOCKS" in str(error):
            return first_line(error)
        case OSError() if error.errno in FULL:
            return f"{error.filename or constants.HF_HOME}: {error.strerror}"
        case httpx.RequestError():
            return f"{hub} cannot be reached ({type(error).__name__}); HF_ENDPOINT names another hub"
        case ValueError() if str(error).startswith(("Port ", "Invalid port", "Invalid IPv6")):  # of an address
            return NO_ADDRESS
        case httpx.InvalidURL():
            return NO_ADDRESS
    return ""


def is_text(value: object) -> bool:
    """Whether a value of a repository's card is a text or a list of texts, as it should be."""
    texts = value if isinstance(value, list) else [value]
    return all(isinstance(text, str) and text.isprintable() for text in texts)


def fetch(pin: Pin, kind: Kind, patterns: Sequence[str]) -> Path:
    """Fetch the files that match the globs; returns their folder, which does not exist if none match.

    Nothing is requested if all of them have been fetched and verified before, or with HF_HUB_OFFLINE. Raises InputError
    if they cannot be fetched, or their checksums are not those of the hub.
    """
    hub = HfApi(token=hub_token())
    download = partial(
        hub.snapshot_download, pin.repository, repo_type=kind, revision=pin.commit, allow_patterns=list(patterns)
    )
    with hub_session(str(pin)):
        before = _fetched_before(pin, kind, download)
        if before and (constants.HF_HUB_OFFLINE or _stamp(before, patterns).is_file()):
            return before
        folder = Path(download())
        listing(pin, kind)
        if not folder.is_dir():  # no file matches
            return folder
        mismatches = hub.verify_repo_checksums(pin.repository, repo_type=kind, revision=pin.commit).mismatches
    for wrong in mismatches:
        (folder / wrong["path"]).resolve().unlink(missing_ok=True)  # equal files share their bytes
        (folder / wrong["path"]).unlink(missing_ok=True)
    if mismatches:
        wrong = mismatches[0]
        raise InputError(
            f"{pin}: {wrong['path']} came with the {wrong['algorithm']} {wrong['actual']}, "
            f"expected {wrong['expected']}; it was removed; run again to fetch it anew"
        )
    with suppress(OSError):  # a cache that others share may be read-only; then it is verified every time
        write_text(_stamp(folder, patterns), "")
    return folder


def _fetched_before(pin: Pin, kind: Kind, download: Callable[..., str]) -> Path | None:
    """The folder of the files, if all of them are there already."""
    with suppress(errors.CachedRepoTreeNotFoundError, errors.LocalEntryNotFoundError):
        listing(pin, kind)  # fails where another client has fetched single files only
        return Path(download(local_files_only=True))
    return None


def _stamp(folder: Path, patterns: Sequence[str]) -> Path:
    """The file that marks the files of a snapshot that match the globs as verified."""
    digest = hashlib.sha256(" ".join(patterns).encode()).hexdigest()[:16]
    return folder.parents[1] / "verified" / f"{folder.name}-{digest}"


def listing(pin: Pin, kind: Kind) -> list[str]:
    """The names of all files of a repository, as stored when it was fetched; nothing is requested.

    Raises CachedRepoTreeNotFoundError if it was not fetched.
    """
    return [file.path for file in get_cached_repo_tree(pin.repository, repo_type=kind, revision=pin.commit)]


def require_token() -> None:
    """Raise InputError if HF_TOKEN is not set."""
    if not hub_token():
        page = f"{constants.ENDPOINT}/settings/tokens"
        raise InputError(f"HF_TOKEN is not set; create a token with write access at {page}")


def upload(
    folder: Path, repository: str, branch: str | None, private: bool, message: str, ours: Sequence[str]
) -> tuple[Pin, bool]:
    """Upload a folder; returns the commit that holds it, and whether that is new; if not, the files were all there.

    The repository and the branch are created if need be. Files of the repository that are not in `folder` are deleted
    if one of the globs `ours` matches. Raises InputError if the hub refuses the upload, or the repository is public
    although it should be `private`.
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
    return Pin(repository, commit.oid), commit.oid != before


def stored_digest(pin: Pin, path: str) -> str | None:
    """The SHA-256 of a large file at the hub; None if the file is missing or small.

    Raises InputError if the repository cannot be read.
    """
    with hub_session(str(pin)):
        found = HfApi(token=hub_token()).get_paths_info(pin.repository, [path], revision=pin.commit)
    large = getattr(found[0], "lfs", None) if found else None
    return large.sha256 if large else None
