"""A stage's guard: one run at a time, and nothing may change under it.

DVC records code and params when a stage ends, so an edit made while it runs would be recorded as if
it had run (DVC issue 11058). The guard remembers what the stage started from and fails at the end if
it changed. And since a killed `dvc` leaves its stage running, the guard holds a lock that tells a
second run who is first.
"""

import fcntl
import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stages.harness.errors import InputError
from stages.harness.settings import PARAMS, read_params, section

LOCKS = Path(".retrace/locks")
PROJECT = Path(__file__).parents[2]  # a study runs in a folder of its own
Snapshot = dict[str, tuple[int, int]]  # path → size and time of change


@contextmanager
def guarded(name: str, inputs: Iterable[Path], keys: Iterable[str]) -> Iterator[None]:
    """Hold the lock called `name`; raise an InputError if an input, a param or code changed meanwhile.

    `keys` are the dotted keys of params.yaml that the stage depends on.
    """
    inputs, keys = list(inputs), list(keys)
    with _locked(name):
        code = _code()
        data = _snapshot(inputs)
        values = _values(keys)
        yield
        loaded = {str(path) for path in _loaded()}
        now = _code()
        changed = [path for path in loaded if now.get(path) != code.get(path)]
        changed += [path for path in data.keys() | _snapshot(inputs).keys() if data.get(path) != _stat(Path(path))]
        changed += [f"{PARAMS}: {key}" for key, value in _values(keys).items() if value != values[key]]
        if changed:
            raise InputError(f"{min(changed)} changed while {name} ran; run it again")


def run_digest(inputs: Iterable[Path], keys: Iterable[str], layout: str) -> str:
    """A digest of what a run's outcome depends on: params, input files, the code it has loaded, and the layout."""
    settings = json.dumps(_values(list(keys)), sort_keys=True)
    files = [f"{path} {file_digest(path)}" for path in _files(inputs)]
    files += [f"{path} {file_digest(PROJECT / path)}" for path in sorted(_loaded())]
    return hashlib.sha256("\n".join([layout, settings, *files]).encode()).hexdigest()


def file_digest(path: Path) -> str:
    """The SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def running() -> dict[str, int]:
    """The process of each guarded run that goes on in this folder, by name."""
    return {path.stem: pid for path in sorted(LOCKS.glob("*.lock")) if (pid := _holder(path)) is not None}


def _holder(path: Path) -> int | None:
    with path.open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return int(lock.read().strip() or 0) or None  # empty for the moment between locking and writing
    return None


@contextmanager
def _locked(name: str) -> Iterator[None]:
    LOCKS.mkdir(parents=True, exist_ok=True)
    with (LOCKS / f"{name}.lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise InputError(f"{name} is already running here as process {lock.read().strip()}") from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def _values(keys: list[str]) -> dict[str, Any]:
    params = read_params() if keys else {}
    return {key: section(params, key) for key in keys}


def _code() -> Snapshot:
    """All of the project's modules, relative to the project."""
    found = ((path, _stat(path)) for path in sorted((PROJECT / "stages").rglob("*.py")))
    return {str(path.relative_to(PROJECT)): status for path, status in found if status is not None}


def _loaded() -> list[Path]:
    """The project's modules that this process has imported, relative to the project."""
    files = [
        getattr(module, "__file__", None) for name, module in list(sys.modules.items()) if name.startswith("stages")
    ]
    paths = [Path(file) for file in files if file]
    return [path.relative_to(PROJECT) for path in paths if path.is_relative_to(PROJECT)]


def _snapshot(paths: Iterable[Path]) -> Snapshot:
    return {str(file): found for file in _files(paths) if (found := _stat(file)) is not None}


def _files(paths: Iterable[Path]) -> list[Path]:
    """The files among `paths` and under them."""
    every = (file for path in paths for file in (sorted(path.rglob("*")) if path.is_dir() else [path]))
    return [file for file in every if file.is_file()]


def _stat(path: Path) -> tuple[int, int] | None:
    if not path.is_file():
        return None
    status = path.stat()
    return status.st_size, status.st_mtime_ns
