"""Requests to the Hugging Face Hub: retried after passing faults, and errors in one line.

HF_ENDPOINT names another hub, HF_TOKEN opens private and gated repositories, and with HF_HUB_OFFLINE=1 nothing is
requested. A token stored elsewhere on the machine is not sent.
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

PASSING = (408, 429, 500, 502, 503, 504)  # status codes after which the same request may succeed
BROKEN = (httpx.TimeoutException, httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError)
TRIES = 4  # of one request; huggingface_hub retries downloads only
FIRST_WAIT, LONGEST_WAIT = 0.5, 60.0  # seconds; each wait is twice the last, or what the hub asks for


class RetryingClient(httpx.Client):
    """A client that retries a request after a passing fault, with the hub's timeout where none is set."""

    def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        """Send a request; after PASSING answers and broken connections again, up to TRIES times."""
        if not any((request.extensions.get("timeout") or {}).values()):  # huggingface_hub often sets none
            timeout = httpx.Timeout(constants.HF_HUB_DOWNLOAD_TIMEOUT)
            request.extensions = {**request.extensions, "timeout": timeout.as_dict()}
        # A file that is streamed cannot be sent again from here; huggingface_hub rewinds it and retries.
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
    """A context for requests to the hub.

    Raises InputError, which begins with `about`, where the hub or the network fails.
    """
    _set_client()
    try:
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
        raise InputError(f"{about}: {messages[0]}") from error  # that of the innermost error of the hub


def hub_token() -> str | Literal[False]:
    """The token in HF_TOKEN; False is huggingface_hub's value for no token."""
    return os.environ.get("HF_TOKEN", "").strip() or False


@cache
def _set_client() -> None:
    hooks = get_session().event_hooks  # they enforce HF_HUB_OFFLINE
    set_client_factory(lambda: RetryingClient(event_hooks=hooks, follow_redirects=True))
    logging.set_verbosity_error()  # retries need no warning
    if not sys.stderr.isatty():
        disable_progress_bars()


def _message(error: BaseException) -> str:
    """What went wrong, where it is an error of the hub or of the network."""
    hub = constants.ENDPOINT
    match error:
        case GatedRepoError():
            return f"the repository is gated; accept its terms at {hub} and set HF_TOKEN"
        case RepositoryNotFoundError():
            return f"no such repository at {hub}, or it is private and HF_TOKEN does not open it"
        case RevisionNotFoundError():
            return "the repository has no such commit"
        case OfflineModeIsEnabled() | CachedRepoTreeNotFoundError():
            return "not fetched before, and HF_HUB_OFFLINE forbids fetching it now"
        case LocalEntryNotFoundError():
            return ""  # it stands for its cause
        case EntryNotFoundError():
            return f"the repository has no such file: {_first_line(str(error).split('url:')[-1])}"
        case HfHubHTTPError() if error.response.status_code in (401, 403):
            return f"{hub} refused HF_TOKEN ({error.response.status_code}: {_first_line(error.server_message or '')})"
        case HfHubHTTPError():
            answer = error.response
            return f"{hub} answered {answer.status_code} to {answer.request.method} {answer.url.path}"
        case httpx.RequestError():
            return f"{hub} cannot be reached ({type(error).__name__}); HF_ENDPOINT names another hub"
    return ""


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
