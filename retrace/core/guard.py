"""A stage's guard: one run at a time, and nothing may change under it.

DVC records code and params when a stage ends, so an edit made while it runs would be recorded as if it had been run
(DVC issue 11058). The guard remembers what the stage started from, before the stage reads any of it, and fails at the
end if that has changed. A file lock keeps a second run out and names the first; the system releases it when the process
ends, however it ends. A signal that asks a stage to stop ends it with one line.
"""

import fcntl
import hashlib
import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

from retrace.core.errors import BEGAN, STOPPING, InputError, Interrupted
from retrace.core.files import SUMS, damaged, file_digest, file_digests
from retrace.core.paths import PROJECT, WORKSPACES
from retrace.core.settings import file_of, read_params, values_of

LOCKS = Path(".retrace/locks")
CODE = ("stages", "retrace")
KINDS = (".py", ".json", ".j2", ".css", ".js")  # suffixes of the files in these folders that are code, as in .dvcignore
PAUSE = 0.2  # seconds between two looks at a lock or a process
AHEAD = 60  # seconds that a file server's clock may be ahead; later times are from before this clock was set back
Digests = dict[str, str]  # path → SHA-256 of the file


@dataclass(frozen=True)
class Holder:
    """The process that a lock names."""

    path: Path  # of the lock
    process: int  # 0 between locking and writing
    host: str


def take(path: Path) -> TextIO | None:
    """Lock a file until it is closed, and write the holder into it; None if another process holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        lock = _opened(path)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(path.stat(), os.fstat(lock.fileno())):
                os.ftruncate(lock.fileno(), 0)
                os.write(lock.fileno(), f"{os.getpid()} {socket.gethostname()}".encode())
                return lock
        except BlockingIOError:
            lock.close()
            return None
        except FileNotFoundError:  # the former holder removed it after it was opened here
            pass
        except OSError as error:
            lock.close()
            error.filename = str(path)  # which the system leaves out on a full disk, or on one without file locks
            raise
        lock.close()


def _opened(path: Path) -> TextIO:
    """The file, made if it is missing. Links are not followed: another user may have put one into a shared folder."""
    with suppress(FileNotFoundError):  # in such a folder Linux refuses to open another user's file with O_CREAT
        return os.fdopen(os.open(path, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW), "r+")
    return os.fdopen(os.open(path, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CREAT, 0o666), "r+")


def holder(path: Path) -> Holder | None:
    """The holder that a lock names; None if nobody holds it, or it is not there."""
    with suppress(FileNotFoundError), path.open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            process, _, host = lock.read().strip().partition(" ")
            return Holder(path, int(process) if process.isdecimal() else 0, host)
        except OSError as error:
            error.filename = str(path)
            raise
    return None


def running() -> list[Holder]:
    """The holders of all guarded runs in progress in this folder and in the workspaces of studies."""
    folders = [Path(), *WORKSPACES.glob("*")]
    locks = sorted(path for folder in folders for path in folder.glob(f"{LOCKS}/*.lock"))
    return [found for path in locks if (found := holder(path)) is not None]


@contextmanager
def guarded(name: str, inputs: Collection[Path], settings: Mapping[str, Any]) -> Iterator[Callable[[], str]]:
    """Hold the lock called `name`; raise InputError if an input is damaged, or if inputs, settings or code changed
    meanwhile.

    `settings` are the values of params.yaml and data/params.yaml that the stage depends on, by dotted key, as it read
    them. Inputs must be read inside the block, which gets a function for a digest of what the outcome depends on. A
    signal that asks to stop raises Interrupted.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        raise Interrupted(f"{name}: asked to stop; run it again")

    with lock(name), handled(stop):
        code = _code()
        late = [*_changed_while_starting(code), *_changed_settings(settings)]
        if late:
            raise InputError(f"{late[0]} changed while {name} started; run it again")
        files = file_digests(inputs)
        _require_undamaged(files)
        yield partial(_digest, files, code, settings)
        files_now, code_now = file_digests(inputs), _code()
        changed = [path for path in _used(code | code_now) if code_now.get(path) != code.get(path)]
        changed += [path for path in files.keys() | files_now if files.get(path) != files_now.get(path)]
        changed += _changed_settings(settings)
        if changed:
            raise InputError(f"{min(changed)} changed while {name} ran; run it again")


@contextmanager
def handled(
    handler: Callable[[int, FrameType | None], object] | signal.Handlers, signals: Collection[int] = STOPPING
) -> Iterator[None]:
    """Handle signals in this context with a function, or by the system's default.

    Does nothing outside the main thread, which alone gets them.
    """
    is_main = threading.current_thread() is threading.main_thread()
    before = {number: signal.signal(number, handler) for number in (signals if is_main else ())}
    try:
        yield
    finally:
        for number, handler_before in before.items():
            signal.signal(number, handler_before)


def _digest(inputs: Digests, code: Digests, settings: Mapping[str, Any]) -> str:
    """A digest of what the outcome depends on: settings, input files and the code used so far."""
    files = [f"{path} {digest}" for path, digest in inputs.items()]
    files += [f"{path} {code.get(path)}" for path in _used(code)]
    values = json.dumps(settings, sort_keys=True, default=str)  # YAML reads a name such as 2024-01-01 as a date
    return hashlib.sha256("\n".join([values, *files]).encode(errors="surrogateescape")).hexdigest()


def _require_undamaged(inputs: Digests) -> None:
    """Raise InputError for an input that is not as it was written, and make DVC look at it again.

    DVC assumes that a file is unchanged as long as its modification time and size are.
    """
    for sums in (Path(path) for path in inputs if Path(path).name == SUMS):
        wrong = damaged(sums.parent, inputs)
        if wrong is not None:
            for path in (wrong, sums):
                os.utime(path)
            again = "run `retrace check --cache`, then `dvc repro`, to rebuild it"
            raise InputError(f"{wrong}: damaged: its SHA-256 differs from that in {sums}; {again}")


def lock(name: str, folder: Path = LOCKS) -> TextIO:
    """Hold the lock called `name` until it is closed; raise InputError naming the holder if there is one."""
    path = folder / f"{name}.lock"
    while (held := take(path)) is None:
        other = holder(path)
        if other is not None:  # else another process's `holder` had it locked for a moment
            who = f" as process {other.process}" if other.process else ""
            raise InputError(f"{name} is already running here{who}")
    return held


def _changed_while_starting(code: Digests) -> list[str]:
    """Files of code in use that changed since this process began, so that it may have read their older content."""
    times = {path: (PROJECT / path).stat().st_ctime for path in _used(code)}
    return [path for path, changed in times.items() if BEGAN < changed <= time.time() + AHEAD]


def _changed_settings(settings: Mapping[str, Any]) -> list[str]:
    """The settings whose values have changed since they were read."""
    now = values_of(read_params(), settings) if settings else {}
    return [f"{file_of(key)}: {key}" for key, value in settings.items() if now[key] != value]


def _code() -> Digests:
    """All of the project's code, relative to the project."""
    files = sorted(path for folder in CODE for path in (PROJECT / folder).rglob("*") if path.suffix in KINDS)
    return {str(path.relative_to(PROJECT)): file_digest(path) for path in files if path.is_file()}


def _used(code: Digests) -> list[str]:
    """The project's modules that this process has imported, and other code beside them, relative to the project."""
    names = [name for name in sys.modules if name == "__main__" or name.partition(".")[0] in CODE]
    paths = {Path(file) for name in names if (file := getattr(sys.modules[name], "__file__", None))}
    modules = {str(path.relative_to(PROJECT)) for path in paths if path.is_relative_to(PROJECT)}
    folders = {Path(path).parent for path in modules}
    beside = {path for path in code if not path.endswith(".py") and Path(path).parent in folders}
    return sorted(modules | beside)
