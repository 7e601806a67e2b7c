"""Locks that say who holds them, on files: the system lets go of one when its process ends, however it ends."""

import fcntl
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO


@dataclass(frozen=True)
class Holder:
    """The process that a lock names."""

    path: Path  # of the lock
    process: int  # 0 for the moment between locking and writing
    host: str


def take(path: Path) -> TextIO | None:
    """Lock a file and write there who holds it, until it is closed; None where another process holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        lock = path.open("a+")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            return None
        if _is_at(path, lock):
            lock.truncate(0)
            lock.write(f"{os.getpid()} {socket.gethostname()}")
            lock.flush()
            return lock
        lock.close()  # whoever held it removed it after it was opened here


def holder(path: Path) -> Holder | None:
    """Who holds a lock, by what it says itself; None where nobody does."""
    with path.open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            process, _, host = lock.read().strip().partition(" ")
            return Holder(path, int(process) if process.isdigit() else 0, host)
    return None


def _is_at(path: Path, lock: TextIO) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(lock.fileno()))
    except FileNotFoundError:
        return False
