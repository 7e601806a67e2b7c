"""Where a result was made: commit, machine and versions, and the time of a stage; and what git says of a folder."""

import os
import platform
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from retrace.core.errors import InputError
from retrace.core.files import write_json
from retrace.core.records import Origin, StageRecord

PROJECT = Path(__file__).parents[2]
STAGES = Path("reports/runs/stages")
SOURCES = Path("reports/sources")  # apart from these: studies depend on them, and some need no text
LIBRARIES = ("torch", "transformers", "tokenizers", "numpy")
WRITTEN = (":!*dvc.lock", ":!*reports/*")  # by the pipeline itself while it runs


def find_origin(device: str | None = None) -> Origin:
    """The origin of what is made now; `device` is the name of a GPU."""
    changes = try_git("status", "--porcelain", "--untracked-files=no", "--", ".", *WRITTEN, folder=PROJECT)
    return Origin(
        commit=try_git("rev-parse", "HEAD", folder=PROJECT),
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


def git(*arguments: str, folder: Path = Path()) -> str:
    """What git prints in a folder, without the last line break.

    Raises InputError where there is no git, or it fails.
    """
    try:
        done = subprocess.run(("git", *arguments), cwd=folder, capture_output=True, text=True, check=False)
    except OSError as error:
        raise InputError(f"git: {error.strerror}") from None
    if done.returncode:
        said = done.stderr.strip().partition("\n")[0] or "it failed"
        raise InputError(f"{folder.absolute()}: git {arguments[0]}: {said}")
    return done.stdout.removesuffix("\n")


def try_git(*arguments: str, folder: Path = Path()) -> str | None:
    """The same; None where there is no git, or it fails."""
    try:
        return git(*arguments, folder=folder)
    except InputError:
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
