"""Curves of a run while it lasts: DVCLive writes them, `dvc plots show` and editors draw them.

They hold speeds and follow the clock, so they lie in a folder of their own and are no stage's output.
"""

import shutil
import time
from pathlib import Path
from types import TracebackType
from typing import Any

CURVES = Path("reports/live")
BEGINS = 30.0  # seconds; a shorter run does without, for loading DVCLive takes some of them
EVERY = 5.0  # seconds between two points


class LiveCurves:
    """The curves of one run; those that an earlier run of the name left are removed unless this one goes on with it."""

    def __init__(self, name: str, goes_on: bool, wanted: bool) -> None:
        self._folder, self._goes_on, self._wanted = CURVES / Path(*name.split()), goes_on, wanted
        self._live: Any = None
        self._next = time.monotonic() + BEGINS
        if wanted and not goes_on:
            shutil.rmtree(self._folder, ignore_errors=True)

    def log(self, step: int, **figures: float) -> None:
        """Add a point where it is time for one."""
        if not self._wanted or time.monotonic() < self._next:
            return
        if self._live is None:
            self._live = _open(self._folder, self._goes_on)
        if self._live is None:
            self._wanted = False
            return
        self._live.step = step
        for name, value in figures.items():
            self._live.log_metric(name, value)
        self._live.sync()
        self._next = time.monotonic() + EVERY

    def __enter__(self) -> "LiveCurves":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.end()


def _open(folder: Path, goes_on: bool) -> Any:
    """DVCLive, which is to leave dvc.yaml and experiments alone: both are the pipeline's.

    None in a git repository without a commit, which it does not take: no reason to end a run.
    """
    from dvclive.live import Live
    from scmrepo.exceptions import SCMError

    try:
        return Live(dir=str(folder), resume=goes_on, dvcyaml=None, save_dvc_exp=False)
    except SCMError:
        return None
