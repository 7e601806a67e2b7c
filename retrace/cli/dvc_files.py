"""DVC's own files in a checkout: the lock of its processes, its configuration and its cache."""

import re
import time
from itertools import chain
from pathlib import Path
from typing import Any

import psutil

from retrace.core.errors import InputError, first_line
from retrace.core.files import file_digest, read_object

LOCK = Path(".dvc/tmp/rwlock")  # JSON: which paths each running DVC process reads or writes
WRITTEN = 1.0  # seconds after which DVC has finished writing it
CACHED = re.compile(r"[0-9a-f]{30}(\.dir)?")  # a file of DVC's cache, named by the rest of its MD5


def lock_fault() -> str | None:
    """Why DVC would not start here, in one line; None if it would.

    A killed DVC may leave this record half-written, or with its process ID, which another program may get later.
    """
    for pause in (WRITTEN, 0):
        try:
            lock = read_object(LOCK)
            users = [*lock.get("write", {}).values(), *chain.from_iterable(lock.get("read", {}).values())]
            commands = {int(user["pid"]): user["cmd"] for user in users}
            alive = list(filter(psutil.pid_exists, commands))  # DVC itself removes the entries of dead processes
        except FileNotFoundError:
            return None
        except (InputError, AttributeError, KeyError, TypeError, ValueError, OverflowError):
            time.sleep(pause)
            continue
        if not alive or any(map(_is_dvc, alive)):
            return None
        return f"{LOCK} names process {alive[0]} ({commands[alive[0]]}), which is another program by now"
    return f"{LOCK} is damaged"


def _is_dvc(process: int) -> bool:
    """Whether a process is, or may be, DVC or a command of ours that asks DVC for its status, such as a review."""
    try:
        return any(
            Path(part).name == "dvc" or Path(part).parts[-2:] == ("bin", "retrace") or part == "retrace.cli.main"
            for part in psutil.Process(process).cmdline()
        )
    except psutil.Error:  # another user's, or just ended
        return True


def cache_folder() -> Path:
    """The folder of DVC's cache in which each file's path is its MD5."""
    return Path(dvc_config()["cache"].get("dir", ".dvc/cache"), "files/md5")


def dvc_config() -> Any:
    """DVC's configuration; raises InputError if one of its files is malformed."""
    from dvc.config import Config, ConfigError  # here, as it takes half a second to import

    try:
        return Config.from_cwd()
    except ConfigError as error:
        # A line that cannot be read may hold a password, so only its number is shown.
        reason = re.sub(r"Invalid line \(.*\) \(", "Invalid line (", first_line(error))
        raise InputError(f"DVC's configuration (.dvc/config or .dvc/config.local): {reason}") from None


def mend_cache() -> None:
    """Remove damaged files from DVC's cache, as DVC does not notice damage; `dvc repro` makes them again."""
    files = sorted(path for path in cache_folder().glob("??/*") if CACHED.fullmatch(path.name))  # others are temporary
    damaged = [path for path in files if file_digest(path, "md5") != path.parent.name + path.name.removesuffix(".dir")]
    for path in damaged:
        path.unlink()
        print(f"{path}: damaged, and removed")
    print(f"DVC's cache: {len(files)} files, {len(damaged)} damaged")
