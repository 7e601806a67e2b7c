"""A remote that is a folder, and one on an S3 server of loopback (moto): is what it has used, whole, and nothing else?

A toy project that has run is sent there. Clones, with dvc.lock and without it, must run nothing and end in its bytes.
Sending and taking are killed (SIGKILL) once so many files are there, and the connection to S3 is cut after so many
bytes, both drawn evenly; run again, they must end with all files, and send none a second time. Files of the remote are
damaged: none may get into a clone, which runs their stages instead. Keys of S3 are planted in the environment, and
everything that was written and said is searched for them.

    pip install -c requirements.txt dvc-s3 "moto[server]"
    python -m tests.campaigns.remotes [--cuts 6] [--seed 1]
"""

import hashlib
import importlib.util
import json
import math
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from retrace.core.files import write_json
from tests.campaigns.stores import Bucket, Folder
from tests.campaigns.trials import RESULTS, UNCACHED, changed, cold, digests, finished_toy, fresh, kill, options
from tests.toy import Project, holding

INSTALL = "without S3, and nothing kept: pip install -c requirements.txt dvc-s3 'moto[server]'"
PLANTED = "planted-secret"
KEYS = {"AWS_ACCESS_KEY_ID": f"{PLANTED}-a", "AWS_SECRET_ACCESS_KEY": f"{PLANTED}-b", "AWS_DEFAULT_REGION": "eu-west-1"}
DVC = (sys.executable, "-m", "dvc")
CHECK = (sys.executable, "-m", "retrace.cli.main", "check")  # with which `make repro` begins: it mends DVC's locks
REPRO = (sys.executable, "-m", "retrace.cli.main", "repro")
PUSH = (*REPRO, "--push")
DAMAGED = 12  # files at once


class Trials:
    """A project that has run, the store of its remote, and a clone of it."""

    def __init__(self, whole: Path, folder: Path, store: Folder | Bucket, draw: random.Random) -> None:
        self.store, self.draw, self.count, self.said = store, draw, Counter[str](), list[str]()
        self.right, self._clone, self.wire = digests(whole), folder / "clone", store.wire
        self.project = fresh(whole, folder / "project")
        self.run(self.project, *DVC, "remote", "add", "--default", "storage", store.url)
        for name, value in {**store.settings, "verify": "true"}.items():
            self.run(self.project, *DVC, "remote", "modify", "storage", name, value)
        self.project.commit("where results are kept")
        cache = self.project.folder / ".dvc/cache"
        self.wanted = {
            path.relative_to(cache).as_posix(): path.read_bytes() for path in cache.rglob("*") if path.is_file()
        }

    def run(self, project: Project, *command: str) -> tuple[int, str]:
        """Exit code of a command and what it says, which is kept."""
        began = time.monotonic()
        done = project.run(*command, code=None)
        self.said.append(done.stdout + done.stderr)
        print(f"  {' '.join(command[2:])}: {done.returncode}, {time.monotonic() - began:.1f} s", flush=True)
        return done.returncode, self.said[-1]

    def clone(self, recorded: bool = True) -> Project:
        """A clone, if not `recorded` one in which nothing says what was run."""
        shutil.rmtree(self._clone, ignore_errors=True)
        subprocess.run(["git", "clone", "-q", self.project.folder, self._clone], check=True)
        for name in () if recorded else ("dvc.lock", "data/dvc.lock", *UNCACHED):
            (self._clone / name).unlink()
        return Project(self._clone)

    def settle(self, name: str, wrong: Sequence[str]) -> None:
        """Count a trial."""
        print(name, wrong or "right", flush=True)
        self.count += Counter({name: 1, "right": not wrong, "wrong": bool(wrong)})

    def clear(self) -> None:
        for name in self.store.times():
            self.store.remove(name)

    def lacking(self, by_dvc: bool = False) -> list[str]:
        """Files that the remote does not have whole; of `dvc push`, of those that it sends."""
        there, left_out = self.store.times(), set[str]()
        if by_dvc:
            left_out = {name for name in self.wanted if name.startswith("runs")}
            left_out |= {place(hashlib.md5((self.project.folder / name).read_bytes()).hexdigest()) for name in UNCACHED}
        wanted = {name: content for name, content in self.wanted.items() if name not in left_out}
        return [name for name, of in wanted.items() if name not in there or self.store.read(name) != of]

    def faults(self, clone: Project, said: str) -> list[str]:
        """Stages that ran, results that are others than the project's, and files of the cache that are damaged."""
        ran = [line for line in said.splitlines() if line.startswith("Running stage")]
        results = changed(digests(clone.folder), self.right)
        return ran + results + [name for name, of in cached(clone).items() if of != self.wanted.get(name, of)]

    def round_trips(self) -> None:
        """Send all, and take it where dvc.lock says what there is, and where nothing does."""
        self.run(self.project, *PUSH)
        self.settle("sent", self.lacking())
        for recorded in (True, False):
            clone = self.clone(recorded)
            _, said = self.run(clone, *REPRO)
            self.settle(f"taken by {'dvc.lock' if recorded else 'the run cache'}", self.faults(clone, said))

    def cuts(self, trials: int) -> None:
        """Cut transfers in both directions, by `retrace repro` and by DVC, and do them again."""
        size = self._bytes()
        for number in range(trials):
            by_dvc, on_wire, share = number % 2 == 1, size > 0 and number % 3 > 0, self.draw.random()
            how = " on the wire" if on_wire else " by a kill"
            command = (*DVC, "push") if by_dvc else PUSH
            self.clear()
            self._cut(self.project, command, share, share * size * on_wire)
            before = self.store.times()
            self.run(self.project, *command)
            after = self.store.times()
            again = [f"{name} again" for name in before if before[name] != after.get(name)]
            self.count += Counter({"files before the cut": len(before), "files after it": len(after) - len(before)})
            self.settle(f"cut while sent{how}", again + self.lacking(by_dvc))
            self.run(self.project, *PUSH)
            clone, command = self.clone(), (*DVC, "pull") if by_dvc else REPRO
            self._cut(clone, command, share, share * size * on_wire)
            _, said = self.run(clone, *command)
            self.settle(f"cut while taken{how}", self.faults(clone, said))

    def _cut(self, project: Project, command: Sequence[str], share: float, size: float) -> None:
        """Cut the wire after so many bytes or, with none, kill a command once a share of the files is there."""
        if size and self.wire:
            self.wire.cut_after(size)
            self.run(project, *command)
            self.wire.cut_after(math.inf)
            return
        with cold(project).start(*command) as running:
            while running.poll() is None:
                there = self.store.times() if project is self.project else places(project)
                if len(there) >= share * len(self.wanted):
                    kill(project.folder, "all")
                    self.count["killed"] += 1
                    break
                time.sleep(0.005)
            self.said += running.communicate()
        self.run(project, *CHECK)

    def _bytes(self) -> int:
        """Bytes on the wire while all is sent; 0 without one."""
        if not self.wire:
            return 0
        self.clear()
        self.wire.cut_after(math.inf)
        self.run(self.project, *PUSH)
        return self.wire.passed

    def damage(self) -> None:
        """Damage files of the remote. Where DVC compares, none is used; one that is removed there is sent again."""
        clone = self.clone()
        self.run(clone, *DVC, "fetch")
        chosen = self.draw.sample(sorted(name for name in cached(clone) if not name.endswith(".dir")), DAMAGED)
        for name in chosen:
            self.store.write(name, damaged(self.wanted[name], self.draw))
        clone = self.clone()
        self.run(clone, *DVC, "remote", "modify", "--local", "storage", "verify", "false")
        self.run(clone, *DVC, "fetch")
        used = [name for name, of in cached(clone).items() if name in chosen and of != self.wanted[name]]
        self.count += Counter({"damaged": len(chosen), "used by DVC unless told to compare": len(used)})
        clone = self.clone()
        _, said = self.run(clone, *DVC, "fetch", "-v")
        of_them = [line for line in said.splitlines() if "corrupted cache file" in line]
        named = [name for name in chosen if any(name.removeprefix("files/md5/") in line for line in of_them)]
        self.count += Counter({"named by dvc fetch -v": len(named)})
        used = [name for name in cached(clone) if name in chosen]
        self.run(clone, *REPRO)
        self.settle("damaged files are not used", used + self.faults(clone, ""))
        for name in chosen:
            self.store.remove(name)
        self.run(self.project, *PUSH)
        self.settle("removed files are sent again", self.lacking())

    def damage_list(self) -> None:
        """Cut a folder's list of files short: DVC names it and ends, and runs the stage once it is removed."""
        stage = "data/dvc.yaml:source"
        (list_,) = (name for name, of in self.wanted.items() if name.endswith(".dir") and b'"sst2/train.tsv"' in of)
        self.store.write(list_, self.wanted[list_][:-9])
        clone = self.clone()
        code, said = self.run(clone, *REPRO, stage)
        named = list_.removeprefix("files/md5/").replace("/", "")
        wrong = [] if code == 255 and f"{named} is corrupted" in said else [said]
        self.store.remove(list_)
        code, said = self.run(clone, *REPRO, stage)
        wrong += [] if code == 0 else [said]
        self.run(clone, *REPRO)
        self.settle("a damaged list of files is named", wrong + self.faults(clone, ""))
        self.run(self.project, *PUSH)
        self.settle("a removed list is sent again", self.lacking())

    def without_network(self) -> None:
        """What a remote that nobody reaches, or that says nothing, does to runs with nothing and something to do."""
        assert self.wire
        for silent in (False, True):
            self.wire.cut_after(math.inf if silent else 0)
            self.wire.silent = silent
            code, said = self.run(self.project, *REPRO)
            wrong = [said] if code or "remote storage" in said else []
            clone = self.clone(recorded=False)
            code, said = self.run(clone, *REPRO, "data/dvc.yaml:source")
            wrong += [said] if code or said.count("nothing is taken from it") != 1 else []
            self.settle("a remote that is silent" if silent else "a remote that is out of reach", wrong)
        self.wire.silent = False
        self.wire.cut_after(0)
        code, said = self.run(clone, *PUSH, "data/dvc.yaml:model")
        told = [line for line in said.splitlines() if line.startswith("error: not sent to remote storage: ")]
        wrong = [] if code == 1 and told and told[-1].endswith("run it again to send the results") else [said]
        self.settle("a remote that takes nothing", wrong)
        self.wire.cut_after(math.inf)

    def secrets(self) -> int:
        """In how many files, and things said, a planted key is."""
        files = [path for folder in (self.project.folder, self._clone) for path in holding(folder, PLANTED)]
        sent = [name for name in self.store.times() if PLANTED.encode() in self.store.read(name)]
        said = [text for text in self.said if PLANTED in text]
        print("secrets:", files, sent, said)
        return len(files) + len(sent) + len(said)


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


def damaged(content: bytes, draw: random.Random) -> bytes:
    """With a bit flipped, or cut short."""
    if draw.random() < 0.5:
        return content[: draw.randrange(len(content))]
    changed = bytearray(content)
    changed[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def campaign(trials: Trials, cuts: int) -> dict[str, Any]:
    """What became of all of it with one remote."""
    trials.round_trips()
    trials.cuts(cuts)
    trials.damage()
    trials.damage_list()
    if trials.wire:
        trials.without_network()
    return {**dict(sorted(trials.count.items())), "secrets": trials.secrets()}


def main() -> None:
    cuts, seed = options(__doc__, "cuts", 6)
    os.environ.update(KEYS)
    has_s3 = all(importlib.util.find_spec(name) for name in ("dvc_s3", "moto", "flask"))
    found: dict[str, Any] = {"seed": seed}
    with finished_toy() as (whole, folder):
        Project(whole).commit("run")
        stores = {"folder": Folder(folder / "remote"), **({"s3": Bucket()} if has_s3 else {})}
        for name, store in stores.items():
            (folder / name).mkdir()
            found[name] = campaign(Trials(whole, folder / name, store, random.Random(seed)), cuts)
    print(json.dumps(found, indent=2))
    if has_s3:
        write_json(RESULTS / "remotes.json", found)
    else:
        print(INSTALL)
    sys.exit(any(found[name].get("wrong", 0) or found[name]["secrets"] for name in stores))


if __name__ == "__main__":
    main()
