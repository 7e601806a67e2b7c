"""Remotes in a folder and on a local S3 server (moto): is exactly what they hold used, and only if it is intact?

A toy project that has run is pushed there. Clones, with dvc.lock and without it, must run nothing and end with its
bytes. Pushing and pulling are killed (SIGKILL) once a given number of files is there, and the connection to S3 is cut
after a given number of bytes, both drawn uniformly; run again, they must end with all files, and send none a second
time. Files of the remote are damaged: none may get into a clone, which must run their stages instead. S3 keys are
planted in the environment, and everything written or printed is searched for them.

    pip install -c requirements.txt dvc-s3 "moto[server]"
    python -m tests.campaigns.remotes [--cuts 6] [--seed 1]
"""

import hashlib
import importlib.util
import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from random import Random

from tests.campaigns.damage import flipped
from tests.campaigns.stores import Bucket, Folder
from tests.campaigns.trials import UNCACHED, Outcome, changed, cold, digests, fresh, kill, main
from tests.toy import Project, holding

INSTALL = "without S3: pip install -c requirements.txt dvc-s3 'moto[server]'"
PLANTED = "planted-secret"
KEYS = {"AWS_ACCESS_KEY_ID": f"{PLANTED}-a", "AWS_SECRET_ACCESS_KEY": f"{PLANTED}-b", "AWS_DEFAULT_REGION": "eu-west-1"}
DVC = (sys.executable, "-m", "dvc")
CHECK = (sys.executable, "-m", "retrace.cli.main", "check")  # with which `make repro` begins: it mends DVC's locks
REPRO = (sys.executable, "-m", "retrace.cli.main", "repro")
PUSH = (*REPRO, "--push")
DAMAGED = 12  # files at once


class Trials:
    """A project that has run, the store of its remote, and a clone of it."""

    def __init__(self, whole: Path, folder: Path, store: Folder | Bucket, draw: Random) -> None:
        self.store, self.draw, self.said = store, draw, list[str]()
        self.right, self._clone, self.wire = digests(whole), folder / "clone", store.wire
        self.project = fresh(whole, folder / "project")
        self.run(self.project, *DVC, "remote", "add", "--default", "storage", store.url)
        for name, value in {**store.settings, "verify": "true"}.items():
            self.run(self.project, *DVC, "remote", "modify", "storage", name, value)
        self.project.commit("where results are kept")
        cache = self.project.folder / ".dvc/cache"
        files = [path for path in cache.rglob("*") if path.is_file()]
        self.wanted = {path.relative_to(cache).as_posix(): path.read_bytes() for path in files}

    def run(self, project: Project, *command: str) -> tuple[int, str]:
        """Exit code and output of a command; the output is kept."""
        began = time.monotonic()
        done = project.run(*command, code=None)
        self.said.append(done.stdout + done.stderr)
        print(f"  {' '.join(command[2:])}: {done.returncode}, {time.monotonic() - began:.1f} s", flush=True)
        return done.returncode, self.said[-1]

    def clone(self, recorded: bool = True) -> Project:
        """A clone; unless it is `recorded`, nothing in it says what was run."""
        shutil.rmtree(self._clone, ignore_errors=True)
        subprocess.run(["git", "clone", "-q", self.project.folder, self._clone], check=True)
        for name in () if recorded else ("dvc.lock", "data/dvc.lock", *UNCACHED):
            (self._clone / name).unlink()
        return Project(self._clone)

    def clear(self) -> None:
        for name in self.store.times():
            self.store.remove(name)

    def lacking(self, by_dvc: bool = False) -> list[str]:
        """Files that the remote lacks or has damaged; after `dvc push`, of those that it sends."""
        stored, left_out = self.store.times(), set[str]()
        if by_dvc:
            left_out = {name for name in self.wanted if name.startswith("runs")}
            left_out |= {place(hashlib.md5((self.project.folder / name).read_bytes()).hexdigest()) for name in UNCACHED}
        wanted = {name: content for name, content in self.wanted.items() if name not in left_out}
        return [name for name, data in wanted.items() if name not in stored or self.store.read(name) != data]

    def faults(self, clone: Project, said: str) -> list[str]:
        """Stages that ran, results that differ from the project's, and files of the cache that are damaged."""
        ran = [line for line in said.splitlines() if line.startswith("Running stage")]
        results = changed(digests(clone.folder), self.right)
        return ran + results + [name for name, data in cached(clone).items() if data != self.wanted.get(name, data)]

    def round_trips(self) -> Iterator[Outcome]:
        """Push everything, and pull it both with dvc.lock and without."""
        self.run(self.project, *PUSH)
        yield Outcome("sent", self.lacking())
        for recorded in (True, False):
            clone = self.clone(recorded)
            _, said = self.run(clone, *REPRO)
            yield Outcome(f"taken by {'dvc.lock' if recorded else 'the run cache'}", self.faults(clone, said))

    def cuts(self, trials: int) -> Iterator[Outcome]:
        """Cut transfers in both directions, by `retrace repro` and by DVC, and repeat them."""
        size = self._bytes()
        for number in range(trials):
            by_dvc, on_wire, share = number % 2 == 1, size > 0 and number % 3 > 0, self.draw.random()
            how = " on the wire" if on_wire else " by a kill"
            command = (*DVC, "push") if by_dvc else PUSH
            self.clear()
            killed = self._cut(self.project, command, share, share * size * on_wire)
            before = self.store.times()
            self.run(self.project, *command)
            after = self.store.times()
            again = [f"{name} again" for name in before if before[name] != after.get(name)]
            counts = {"files before the cut": len(before), "files after it": len(after) - len(before), "killed": killed}
            yield Outcome(f"cut while sent{how}", again + self.lacking(by_dvc), counts)
            self.run(self.project, *PUSH)
            clone, command = self.clone(), (*DVC, "pull") if by_dvc else REPRO
            killed = self._cut(clone, command, share, share * size * on_wire)
            _, said = self.run(clone, *command)
            yield Outcome(f"cut while taken{how}", self.faults(clone, said), {"killed": killed})

    def _cut(self, project: Project, command: Sequence[str], share: float, size: float) -> bool:
        """Cut the connection after `size` bytes or, if it is 0, kill a command once a share of the files is there."""
        if size and self.wire:
            self.wire.cut_after(size)
            self.run(project, *command)
            self.wire.cut_after(math.inf)
            return False
        is_killed, store = False, self.store.times if project is self.project else lambda: places(project)
        with cold(project).start(*command) as running:
            while running.poll() is None and not is_killed:
                if len(store()) >= share * len(self.wanted):
                    is_killed = kill(project.folder, "all")
                time.sleep(0.005)
            self.said += running.communicate()
        self.run(project, *CHECK)
        return is_killed

    def _bytes(self) -> int:
        """Bytes sent over the connection while everything is pushed; 0 without a connection."""
        if not self.wire:
            return 0
        self.clear()
        self.wire.cut_after(math.inf)
        self.run(self.project, *PUSH)
        return self.wire.passed

    def damage(self) -> Iterator[Outcome]:
        """Damage files of the remote. If DVC verifies, none may be used; one that is removed there is sent again."""
        clone = self.clone()
        self.run(clone, *DVC, "fetch")
        chosen = self.draw.sample(sorted(name for name in cached(clone) if not name.endswith(".dir")), DAMAGED)
        for name in chosen:
            self.store.write(name, damaged(self.wanted[name], self.draw))
        clone = self.clone()
        self.run(clone, *DVC, "remote", "modify", "--local", "storage", "verify", "false")
        self.run(clone, *DVC, "fetch")
        used = [name for name, data in cached(clone).items() if name in chosen and data != self.wanted[name]]
        counts = {"damaged": len(chosen), "used by DVC unless told to compare": len(used)}
        clone = self.clone()
        _, said = self.run(clone, *DVC, "fetch", "-v")
        of_them = [line for line in said.splitlines() if "corrupted cache file" in line]
        named = [name for name in chosen if any(name.removeprefix("files/md5/") in line for line in of_them)]
        used = [name for name in cached(clone) if name in chosen]
        self.run(clone, *REPRO)
        counts["named by dvc fetch -v"] = len(named)
        yield Outcome("damaged files are not used", used + self.faults(clone, ""), counts)
        for name in chosen:
            self.store.remove(name)
        self.run(self.project, *PUSH)
        yield Outcome("removed files are sent again", self.lacking())

    def damage_list(self) -> Iterator[Outcome]:
        """Cut a folder's list of files short: DVC names it and ends, and runs the stage once it is removed."""
        stage = "data/dvc.yaml:source"
        (list_,) = (name for name, data in self.wanted.items() if name.endswith(".dir") and b'"classes.json"' in data)
        self.store.write(list_, self.wanted[list_][:-9])
        clone, named = self.clone(), list_.removeprefix("files/md5/").replace("/", "")
        code, said = self.run(clone, *REPRO, stage)
        wrong = [] if code == 255 and f"{named} is corrupted" in said else [said]
        self.store.remove(list_)
        code, said = self.run(clone, *REPRO, stage)
        wrong += [said] if code else []
        self.run(clone, *REPRO)
        yield Outcome("a damaged list of files is named", wrong + self.faults(clone, ""))
        self.run(self.project, *PUSH)
        yield Outcome("a removed list is sent again", self.lacking())

    def without_network(self) -> Iterator[Outcome]:
        """How an unreachable or silent remote affects runs with nothing and with something to do."""
        assert self.wire
        for silent in (False, True):
            self.wire.cut_after(math.inf if silent else 0)
            self.wire.silent = silent
            code, said = self.run(self.project, *REPRO)
            wrong = [said] if code or "remote storage" in said else []
            clone = self.clone(recorded=False)
            code, said = self.run(clone, *REPRO, "data/dvc.yaml:source")
            wrong += [said] if code or said.count("continuing without it") != 1 else []
            yield Outcome(f"a remote that is {'silent' if silent else 'out of reach'}", wrong)
            self.wire.silent = False
        self.wire.cut_after(0)
        code, said = self.run(clone, *PUSH, "data/dvc.yaml:model")
        told = [line for line in said.splitlines() if line.startswith("error: not sent to remote storage: ")]
        wrong = [] if code == 1 and told and told[-1].endswith("run the command again to send the results") else [said]
        yield Outcome("a remote that takes nothing", wrong)
        self.wire.cut_after(math.inf)

    def secrets(self) -> Iterator[Outcome]:
        """Files and output that contain a planted key."""
        found = [str(path) for folder in (self.project.folder, self._clone) for path in holding(folder, PLANTED)]
        found += [name for name in self.store.times() if PLANTED.encode() in self.store.read(name)]
        yield Outcome("secrets", found + [text for text in self.said if PLANTED in text])


def place(digest: str) -> str:
    """Where a cache or remote has the file of a digest."""
    return f"files/md5/{digest[:2]}/{digest[2:]}"


def places(project: Project) -> dict[str, Path]:
    """The files of a project's cache by their place."""
    files = (project.folder / ".dvc/cache/files/md5").glob("??/*")
    return {place(path.parent.name + path.name): path for path in files if "." not in path.stem}


def cached(project: Project) -> dict[str, bytes]:
    """What these files hold."""
    return {name: path.read_bytes() for name, path in places(project).items()}


def damaged(content: bytes, draw: Random) -> bytes:
    """With a bit flipped, or cut short."""
    is_cut, size = draw.random() < 0.5, len(content)
    return content[: draw.randrange(size)] if is_cut else flipped(content, draw.randrange(8 * size))


def campaign(whole: Path, folder: Path, cuts: int, draw: Random) -> Iterator[Outcome]:
    """Everything, with each remote."""
    has_s3 = all(importlib.util.find_spec(name) for name in ("dvc_s3", "moto", "flask"))
    print("" if has_s3 else INSTALL)
    Project(whole).commit("run")
    for name, store in {"folder": lambda: Folder(folder / "remote"), **({"s3": Bucket} if has_s3 else {})}.items():
        (folder / name).mkdir()
        trials = Trials(whole, folder / name, store(), draw)
        parts = [trials.round_trips(), trials.cuts(cuts), trials.damage(), trials.damage_list()]
        for trial in chain(*parts, trials.without_network() if trials.wire else (), trials.secrets()):
            yield trial._replace(kind=f"{name}: {trial.kind}")


if __name__ == "__main__":
    os.environ |= KEYS
    main(campaign, __doc__, 6, "cuts")
