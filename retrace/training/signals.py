"""Being asked to stop: SIGTERM, and SIGUSR1 as Slurm sends it before time is up.

Training notes the signal, finishes its step, saves its state and ends with an exit code of its own.
"""

import signal
from types import FrameType, TracebackType
from typing import Any

SIGNALS = (signal.SIGTERM, signal.SIGUSR1)


class StopSignals:
    """A context in which the signals are noted instead of ending the process."""

    def __init__(self) -> None:
        self.received: str | None = None  # the name of the last signal
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "StopSignals":
        self._before = {number: signal.signal(number, self._note) for number in SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.received = signal.Signals(number).name
