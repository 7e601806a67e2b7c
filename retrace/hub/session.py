"""Talking to the Hugging Face Hub: requests are tried again where that helps, and what goes wrong is one line.

HF_ENDPOINT names another hub, HF_TOKEN opens private and gated repositories, and with HF_HUB_OFFLINE=1 nothing is
requested. A token that was stored elsewhere on the machine is not sent.
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Literal

from huggingface_hub import constants, get_session, set_client_factory
from huggingface_hub.errors import (
    CachedRepoTreeNotFoundError,
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.utils import disable_progress_bars, httpx, logging

from retrace.core.errors import InputError

PASSING = (408, 429, 500, 502, 503, 504)  # answers after which the same request may succeed
BROKEN = (httpx.TimeoutException, httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError)
TRIES = 4  # of one request; the client's own functions try some requests again
FIRST_WAIT, LONGEST_WAIT = 0.5, 60.0  # seconds; each wait is twice the one before, or what the hub asks for


class RetryingClient(httpx.Client):
    """A client that sends a request again after a passing fault, and waits no longer than the hub's own timeout."""

    def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        """Send, and again after PASSING answers and connections that broke; what remains is the last fault."""
        if not any((request.extensions.get("timeout") or {}).values()):  # the client's functions often set none
            timeout = httpx.Timeout(constants.HF_HUB_DOWNLOAD_TIMEOUT)
            request.extensions = {**request.extensions, "timeout": timeout.as_dict()}
        # What is sent as it is read from a file is gone; the client's own function rewinds the file and tries again.
        if not isinstance(request.stream, httpx.ByteStream):
            return super().send(request, **options)
        for attempt in range(1, TRIES):
            wait = FIRST_WAIT * 2 ** (attempt - 1)
            try:
                response = super().send(request, **options)
            except BROKEN:
                time.sleep(wait)
                continue
            if response.status_code not in PASSING:
                return response
            asked = response.headers.get("Retry-After", "")
            response.close()
            time.sleep(min(float(asked) if asked.isdecimal() else wait, LONGEST_WAIT))
        return super().send(request, **options)


@contextmanager
def hub_session(about: str) -> Iterator[None]:
    """Everything within talks to the hub in this way.

    Raises InputError, which begins with what it was `about`, where the hub or the way to it has a fault.
    """
    _set_client()
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        fault = _fault(error)
        if fault is None:
            raise
        raise InputError(f"{about}: {fault}") from error


def hub_token() -> str | Literal[False]:
    """The token of the environment; False is the hub's word for none."""
    return os.environ.get("HF_TOKEN", "").strip() or False


@cache
def _set_client() -> None:
    hooks = get_session().event_hooks  # those that keep the client quiet when it is to be offline
    set_client_factory(lambda: RetryingClient(event_hooks=hooks, follow_redirects=True))
    logging.set_verbosity_error()  # a request that is tried again is no news
    if not sys.stderr.isatty():
        disable_progress_bars()


def _fault(error: BaseException) -> str | None:
    """What is wrong in words; None where it is none of the hub's. The innermost cause that is known says most."""
    causes = [error]
    while (inner := causes[-1].__cause__ or causes[-1].__context__) is not None and inner not in causes:
        causes.append(inner)
    said = [words for cause in reversed(causes) if (words := _words(cause)) is not None]
    return said[0] if said else None


def _words(error: BaseException) -> str | None:
    hub = constants.ENDPOINT
    match error:
        case GatedRepoError():
            return f"the repository is gated; accept its terms at {hub} and set HF_TOKEN"
        case RepositoryNotFoundError():
            return f"no such repository at {hub}, or it is private and HF_TOKEN does not open it"
        case RevisionNotFoundError():
            return "the repository has no such commit"
        case HfHubHTTPError() if error.response.status_code in (401, 403):
            return f"{hub} refused HF_TOKEN ({error.response.status_code}: {_first_line(error.server_message)})"
        case OfflineModeIsEnabled() | CachedRepoTreeNotFoundError():  # the latter: not as a whole
            return "not fetched before, and HF_HUB_OFFLINE forbids to fetch it now"
        case LocalEntryNotFoundError():
            return None  # it stands for its cause
        case EntryNotFoundError():
            return f"the repository has no such file: {_first_line(str(error).split('url:')[-1])}"
        case HfHubHTTPError():
            answer = error.response
            return f"{hub} answered {answer.status_code} to {answer.request.method} {answer.url.path}"
        case httpx.RequestError():
            return f"{hub} cannot be reached ({type(error).__name__}); HF_ENDPOINT names another hub"
    return None


def _first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]
