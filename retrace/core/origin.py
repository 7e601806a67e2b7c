"""Where a result was made: commit, machine and versions, and the time of a stage."""

import os
import platform
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from retrace.core.files import write_json
from retrace.core.records import Origin, StageRecord

PROJECT = Path(__file__).parents[2]
STAGES = Path("reports/runs/stages")
SOURCES = Path("reports/sources")  # apart from these: studies depend on them, and some need no text
LIBRARIES = ("torch", "transformers", "tokenizers", "numpy")
WRITTEN = (":!*dvc.lock", ":!*reports/*")  # by the pipeline itself while it runs


def find_origin(device: str | None = None) -> Origin:
    """The origin of what is made now; `device` is the name of a GPU."""
    changes = _git("status", "--porcelain", "--untracked-files=no", "--", ".", *WRITTEN)
    return Origin(
        commit=_git("rev-parse", "HEAD") or None,
        clean=changes == "",
        date=datetime.now(UTC).date().isoformat(),
        machine=device or f"{_processor()}, {os.cpu_count()} cores",
        versions={"python": platform.python_version(), **{name: _version(name) for name in LIBRARIES}},
    )


@contextmanager
def timed(stage: str, is_main: bool = True, folder: Path = STAGES) -> Iterator[None]:
    """Write the time of a stage to `folder` when it is done; of several processes one writes."""
    start = time.perf_counter()
    yield
    if is_main:
        record = StageRecord(seconds=round(time.perf_counter() - start, 1), origin=find_origin())
        write_json(folder / f"{stage}.json", record.to_json())


def _git(*arguments: str) -> str | None:
    """What git prints; None without git or outside of a repository."""
    try:
        return subprocess.run(
            ("git", *arguments), cwd=PROJECT, capture_output=True, text=True, check=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def _processor() -> str:
    """The processor's name; Linux has it in a file."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "none"
