"""What can go wrong on the way, on demand: for the next so many requests whose path matches."""

import re
import threading
from dataclasses import dataclass
from typing import Literal

from tests.hub.messages import HubError, Request, Response


@dataclass(frozen=True)
class Status:
    """An error status instead of an answer; without a code, huggingface_hub raises a plain HfHubHTTPError."""

    status: int
    retry_after: int | None = None  # seconds, as the header Retry-After
    code: str | None = None  # X-Error-Code, such as GatedRepo
    message: str = "fault on demand"

    def response(self) -> Response:
        """The answer that the client gets."""
        headers = {} if self.retry_after is None else {"Retry_After": str(self.retry_after)}
        return HubError(self.status, self.message, self.code, **headers).response


@dataclass(frozen=True)
class Silence:
    """The connection is accepted and nothing is answered, for so many seconds; then it is closed."""

    seconds: float


@dataclass(frozen=True)
class Cut:
    """The connection is closed.

    `request`: before anything is done. `answer`: when all is done, before the client is told.
    `body`: when half of a file has been sent.
    """

    at: Literal["request", "answer", "body"] = "body"


@dataclass(frozen=True)
class WrongBytes:
    """A file of the right length whose bytes are not those that its entity tag names."""


Fault = Status | Silence | Cut | WrongBytes


@dataclass
class _Order:
    pattern: re.Pattern[str]
    times: int
    fault: Fault
    method: str | None


class FaultPlan:
    """The faults that were asked for, in order; each is used up by the requests it hits."""

    def __init__(self) -> None:
        self._orders: list[_Order] = []
        self._lock = threading.Lock()

    def add(self, pattern: str, times: int, fault: Fault, method: str | None = None) -> None:
        """Let the next requests whose unquoted path `pattern` is found in fail, of one method or of any."""
        self._orders.append(_Order(re.compile(pattern), times, fault, method))

    @property
    def left(self) -> int:
        """How many requests are still to fail."""
        return sum(order.times for order in self._orders)

    def take(self, request: Request, response: Response | None) -> Fault | None:
        """The fault for this request, before it is served (no response yet) or after.

        Faults within a file pass over requests that are answered without one, such as HEAD and redirects.
        """
        with self._lock:
            for order in self._orders:
                asked = order.method in (None, request.method) and order.pattern.search(request.address)
                if order.times and asked and _is_due(order.fault, request, response):
                    order.times -= 1
                    return order.fault
        return None


def _is_due(fault: Fault, request: Request, response: Response | None) -> bool:
    if response is None:
        return fault not in (Cut("answer"), Cut("body"), WrongBytes())
    if fault in (Cut("body"), WrongBytes()):
        return request.method == "GET" and "ETag" in response.headers
    return fault == Cut("answer")
