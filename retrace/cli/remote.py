"""DVC's default remote: whether to pull from it, and pushing results to it while stages still run.

`dvc push` holds DVC's lock while it sends, and without the lock no stage can be recorded. Here nothing is locked: an
entry of DVC's run cache has a stage's inputs and the MD5 of its outputs, and neither an entry nor a file of the cache
ever changes. A stage's entry is sent last. `dvc repro --pull` then takes the stage from the remote, even in a clone
whose dvc.lock does not have it.
"""

import json
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

import typer
from dvc.exceptions import DvcException
from dvc.fs import generic
from dvc.repo import Repo
from dvc.utils.serialize import load_yaml
from dvc_data.hashfile.db import HashFileDB

from retrace.core.errors import InputError, first_line, printable, without_users
from retrace.core.paths import LOCKFILES

PAUSE = 2.0  # seconds between two looks at the run cache
AGAIN = 60.0  # seconds until a failed transfer is retried
PATIENCE = 20.0  # seconds within which a remote has to answer
NO_REMOTE = "--push: there is no remote; dvc remote add --default NAME URL"


def pull_option() -> list[str]:
    """`--pull`, for `dvc repro`, if a stage is out of date and the default remote answers; prints why if it does not.

    It is left out if nothing is out of date: DVC would fetch the whole run cache, and fail without a network.
    """
    with suppress(DvcException), Repo() as repo:  # `dvc repro` reports what is wrong with the repository
        name = repo.config["core"].get("remote")
        if name and repo.status():
            fault = _fault(repo)
            if fault is None:
                return ["--pull"]
            print(f"remote {name}: {fault}; continuing without it", file=sys.stderr)
    return []


def _fault(repo: Repo) -> str | None:
    """Why nothing can be pulled from the default remote; None if it answers."""
    found: list[str | None] = []

    def ask() -> None:
        try:
            remote = repo.cloud.get_remote()
            if not remote.fs.exists(remote.path):
                raise FileNotFoundError(f"{remote.path} is not there, is empty or does not answer")
            found.append(None)
        except Exception as error:  # anything that a remote's client raises
            found.append(_message(error))

    asking = Thread(target=ask, daemon=True)
    asking.start()
    asking.join(PATIENCE)
    return found[0] if found else f"no answer in {PATIENCE:.0f} seconds"


def _message(error: Exception) -> str:
    """The first line of an error's message, without user names and passwords; a server may have written it."""
    return printable(without_users(first_line(error)))


class Sender:
    """Pushes the results of stages to the default remote, in a thread while stages run, and at the end what is left.

    A transfer that fails is reported in one line and retried. Raises InputError if there is no remote, and typer.Exit
    with 1 if the results could not be sent in the end.
    """

    def __init__(self) -> None:
        try:
            self._repo = Repo()
            self._name = self._repo.config["core"].get("remote")
            if self._name is None:
                raise InputError(NO_REMOTE)
            self._remote = self._repo.cloud.get_remote_odb(self._name, "push")
        except (DvcException, ImportError) as error:  # ImportError: the remote's client is not installed
            raise InputError(f"--push: {first_line(error)}") from None
        self._runs = Path(self._repo.stage_cache.cache_dir)
        self._known: dict[Path, dict[str, str]] = {}  # what the entries of the run cache name; they never change
        self._others = self._not_recorded(self._entries())  # stages that ran before with other settings or code
        self._settled = set(self._others)
        self._ended = Event()
        self._thread = Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        if not self._try("run the command again to send the results") and kind is None:
            raise typer.Exit(1)

    def _watch(self) -> None:
        """Push new results until the end, reporting only the first of several failures in a row."""
        is_sent = True
        while not self._ended.wait(PAUSE if is_sent else AGAIN):
            is_sent = self._try(f"trying again every {AGAIN:.0f} seconds", is_silent=not is_sent)

    def _try(self, then: str, is_silent: bool = False) -> bool:
        """Push, and report a failure unless `is_silent`; returns whether it succeeded."""
        try:
            self._send_new()
        except Exception as error:  # anything that a remote's client raises
            if not is_silent:
                print(f"error: not sent to remote {self._name}: {_message(error)}; {then}", file=sys.stderr, flush=True)
            return False
        return True

    def _entries(self) -> set[Path]:
        return {path for path in self._runs.glob("??/*/*") if len(path.name) == 64}  # a SHA-256, so not half-written

    def _made_by(self, entry: Path) -> dict[str, str]:
        """The outputs of an entry, which is read once: `--pull` takes the entries of all runs, but files of few."""
        self._known[entry] = self._known.get(entry) or _made(_read(entry))
        return self._known[entry]

    def _not_recorded(self, entries: Iterable[Path]) -> set[Path]:
        """Those entries of the run cache whose outputs no lock file names."""
        recorded = [_made(stage) for path in LOCKFILES for stage in (_read(path).get("stages") or {}).values()]
        return {path for path in entries if self._made_by(path) not in recorded}

    def _send_new(self) -> None:
        """Push the stages whose outputs are all in DVC's cache; at the end also earlier ones that are recorded now."""
        if self._ended.is_set():  # DVC may have taken them from its run cache instead of running them
            self._settled -= self._others - self._not_recorded(self._others)
        for path in sorted(self._entries() - self._settled):
            made = self._made_by(path)
            files = _files(self._repo.cache.local, made)
            if not files:  # DVC writes the entry before it has moved all files to its cache
                continue
            count = self._send(files)
            odb = self._repo.cloud.get_remote_odb(self._name, "push", hash_name="md5-dos2unix")
            place = odb.fs.join(odb.path, "runs", *path.parts[-3:])  # of the run cache's entry
            if count or not self._remote.fs.exists(place):
                generic.copy(self._repo.cache.local.fs, str(path), self._remote.fs, place)
                print(f"sent to remote {self._name}: {next(iter(made.values()))}, {count} files", flush=True)
            self._settled.add(path)

    def _send(self, digests: set[str]) -> int:
        """Push the files of the cache that the remote lacks; returns their number.

        A folder's list of files is sent last: if the remote has the list, DVC assumes that it has the files.
        """
        cache = self._repo.cache.local
        absent = digests.difference(self._remote.oids_exist(sorted(digests)))
        for are_lists in (False, True):
            group = [each for each in absent if each.endswith(".dir") == are_lists]
            paths = [cache.oid_to_path(each) for each in group]
            self._remote.add(paths, cache.fs, group, check_exists=False, verify=False)
        return len(absent)


def _read(path: Path) -> dict[str, Any]:
    """A YAML file of DVC's; empty if it is half-written or missing."""
    with suppress(OSError, DvcException):
        return load_yaml(path)
    return {}


def _made(stage: dict[str, Any]) -> dict[str, str]:
    """A stage's outputs: paths by MD5."""
    return {out["md5"]: out["path"] for out in stage.get("outs", []) if "md5" in out}


def _files(cache: HashFileDB, digests: Iterable[str]) -> set[str] | None:
    """These digests and those of the files in folders among them; None if the cache lacks any of them."""
    found = set(digests)
    try:
        for digest in [each for each in found if each.endswith(".dir")]:
            found.update(each["md5"] for each in json.loads(Path(cache.oid_to_path(digest)).read_bytes()))
    except FileNotFoundError:
        return None
    return found if all(Path(cache.oid_to_path(each)).is_file() for each in found) else None
