"""Progress of long work: a live bar on a terminal, a plain line now and then elsewhere."""

import sys
import time
from types import TracebackType

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

PLAIN_EVERY = 10.0  # seconds between plain lines


class Meter:
    """Counts steps and tokens and shows loss, tokens a second and the time left.

    Use as a context manager; a quiet meter (for processes that are not the first) shows nothing.
    """

    def __init__(self, title: str, steps: int, done: int = 0, share: float = 0.0, quiet: bool = False) -> None:
        self._title, self._steps, self._quiet = title, steps, quiet
        self._live = None if quiet or not sys.stderr.isatty() else _bar()
        self._task = self._live.add_task(title, total=1.0, note="") if self._live else None
        self._done, self._began = done, share
        self._tokens = 0
        self._busy = 0.0  # seconds of training, evaluation left out
        self._last = self._shown = time.monotonic()

    def __enter__(self) -> "Meter":
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    def resume(self) -> None:
        """Training goes on after an evaluation, whose time is not counted."""
        self._last = time.monotonic()

    def step(self, tokens: int, loss: float, norm: float, share: float) -> None:
        """One optimiser step on `tokens` real tokens with mean loss `loss` (nats) and gradient norm `norm`.

        With it, `share` of the whole run is done.
        """
        self._done += 1
        self._tokens += tokens
        now = time.monotonic()
        self._busy += now - self._last
        self._last = now
        note = f"loss {loss:.3f}  gradient {norm:.2f}  {self.speed:,.0f} tokens/s"
        if self._live and self._task is not None:
            self._live.update(self._task, completed=share, note=note)
        elif not self._quiet and (now - self._shown > PLAIN_EVERY or share >= 1):
            self._shown = now
            left = self._busy / (share - self._began) * max(0.0, 1 - share)
            print(f"{self._title}  {self._done}/{self._steps}  {note}  {left:.0f} s left", flush=True)

    @property
    def speed(self) -> float:
        """Tokens a second so far."""
        return self._tokens / max(self._busy, 1e-9)

    def say(self, *lines: str) -> None:
        """Print lines above the bar."""
        for line in lines:
            if self._live:
                self._live.console.print(line)
            elif not self._quiet:
                print(line, flush=True)


def _bar() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[note]}"), TimeRemainingColumn())
    return Progress(*columns, transient=True)
