"""Faults on demand, for the next few requests whose path matches."""

import re
from dataclasses import dataclass
from typing import Literal

from aiohttp import web


@dataclass(frozen=True)
class Status:
    """An error status instead of an answer; without a code, huggingface_hub raises a plain HfHubHTTPError."""

    status: int
    retry_after: int | None = None  # seconds, as the header Retry-After
    limited: int | None = None  # seconds, as the header RateLimit, by which the real hub says it


@dataclass(frozen=True)
class Silence:
    """The connection is accepted and gets no answer for this many seconds; then it is closed."""

    seconds: float


@dataclass(frozen=True)
class Cut:
    """The connection is closed: before anything is done (`request`), or when half of a file has been sent (`body`)."""

    at: Literal["request", "body"] = "body"


@dataclass(frozen=True)
class WrongBytes:
    """A file of the right length whose bytes are not those that its entity tag names."""


Fault = Status | Silence | Cut | WrongBytes


@dataclass
class _Order:
    pattern: str
    times: int
    fault: Fault
    method: str | None


class FaultPlan:
    """The faults that were ordered; each is used up by the requests it hits."""

    def __init__(self) -> None:
        self._orders: list[_Order] = []

    def add(self, pattern: str, times: int, fault: Fault, method: str | None = None) -> None:
        """Make the next requests whose unquoted path matches `pattern` fail, for one method or for any."""
        self._orders.append(_Order(pattern, times, fault, method))

    @property
    def left(self) -> int:
        """How many requests are still to fail."""
        return sum(order.times for order in self._orders)

    def take(self, request: web.Request, response: web.Response | None) -> Fault | None:
        """The fault for this request, before it is served (no response yet) or after.

        Faults within a file pass over requests that are answered without one, such as HEAD and redirects.
        """
        is_file = response is not None and request.method == "GET" and "ETag" in response.headers
        for order in self._orders:
            matches = order.method in (None, request.method) and re.search(order.pattern, request.path)
            is_due = is_file if order.fault in (Cut("body"), WrongBytes()) else response is None
            if order.times and matches and is_due:
                order.times -= 1
                return order.fault
        return None
