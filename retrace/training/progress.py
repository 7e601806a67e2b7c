"""Progress of a training run: a bar on a terminal, else lines; and live curves, written by DVCLive.

`dvc plots show` and editors draw the curves. They contain speeds, which differ from run to run, so they are not outputs
of a stage.
"""

import math
import os
import shutil
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, Progress, TimeRemainingColumn

PLAIN_EVERY = 10.0  # seconds between lines
CURVES = Path("reports/live")
BEGINS = 30.0  # seconds before the first point; loading DVCLive takes seconds, so short runs have no curves
EVERY = 5.0  # seconds between two points


class Meter(AbstractContextManager["Meter"]):
    """Shows loss, gradient norm, tokens per second and the time left; quiet in all processes but the first."""

    def __init__(self, title: str, steps: int, done: int = 0, quiet: bool = False) -> None:
        self._title, self._steps, self._quiet = title, steps, quiet
        columns = "{task.description}", BarColumn(), "{task.fields[note]}", TimeRemainingColumn()
        self._bar = Progress(*columns, transient=True, disable=quiet or not (sys.stdout and sys.stdout.isatty()))
        self._task = self._bar.add_task(title, total=steps, note="")
        self._bar.start()
        self._done, self._began = done, done
        self._tokens = 0
        self._busy = 0.0  # seconds of training, evaluation left out
        self._last = self._shown = time.monotonic()

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def resume(self) -> None:
        """Restart the clock after an evaluation, whose time is not counted."""
        self._last = time.monotonic()

    def step(self, tokens: int, loss: float, norm: float) -> None:
        """Count an update: its tokens without padding, its mean loss in nats and the norm of its gradient."""
        self._done += 1
        self._tokens += tokens
        now = time.monotonic()
        self._busy += now - self._last
        self._last = now
        note = f"loss {loss:.3f}  grad norm {norm:.2f}  {self.speed:,.0f} tokens/s"
        self._bar.update(self._task, completed=self._done, note=note)
        is_due = now - self._shown > PLAIN_EVERY or self._done == self._steps
        if self._bar.disable and not self._quiet and is_due:
            self._shown = now
            left = self._busy / (self._done - self._began) * (self._steps - self._done)
            print(f"{self._title}  {self._done}/{self._steps}  {note}  {left:.0f} s left", flush=True)

    @property
    def speed(self) -> float:
        """Tokens per second so far."""
        return self._tokens / max(self._busy, 1e-9)

    def say(self, *lines: str) -> None:
        """Print lines above the bar."""
        for line in lines:
            if not self._bar.disable:
                self._bar.console.print(line, markup=False, highlight=False)
            elif not self._quiet:
                print(line, flush=True)


class LiveCurves(AbstractContextManager["LiveCurves"]):
    """The live curves of a run; those of an earlier run of the same name are deleted unless this run resumes it."""

    def __init__(self, name: str, resumes: bool, wanted: bool) -> None:
        self._folder, self._resumes = CURVES / Path(*name.split()), resumes
        self._live: Any = None
        self._next = time.monotonic() + BEGINS if wanted else math.inf
        if wanted and not resumes:
            shutil.rmtree(self._folder, ignore_errors=True)

    def log(self, step: int, **figures: float) -> None:
        """Add a point, unless the last one is too recent."""
        if time.monotonic() < self._next:
            return
        self._live = self._live or _open(self._folder, self._resumes)
        self._next = time.monotonic() + EVERY if self._live else math.inf
        if self._live:
            self._live.step = step
            for name, value in figures.items():
                self._live.log_metric(name, value)
            self._live.sync()

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.end()


def _open(folder: Path, resumes: bool) -> Any:
    """Open DVCLive without dvc.yaml and experiments of its own; None in a git repository without commits."""
    from dvclive.live import Live
    from scmrepo.exceptions import SCMError

    # Else DVCLive sends the points, with a token stored on this machine, to DVC Studio or where .dvc/config says.
    os.environ["DVC_STUDIO_OFFLINE"] = "true"
    # DVCLive reads its last values when it resumes, and does not write them atomically: a kill may have cut them short.
    (folder / "metrics.json").unlink(missing_ok=True)
    try:
        return Live(dir=str(folder), resume=resumes, dvcyaml=None, save_dvc_exp=False)
    except SCMError:
        return None
