"""The pipeline in other environments: hash seeds, locales, folders, caches, a terminal. Are the results the same bytes?

Every trial clones a toy project, changes something that should not matter and runs all stages as a user would, without
the tests' warm server. Every result is compared with those of the project in its usual place.

    python -m tests.campaigns.places [--trials 9]
"""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.campaigns import trials
from tests.toy import Project

ODD = "déjà vu; $(touch x) 'é' & co"  # a folder's name
NOWHERE = "/nonexistent"
USUAL = ("PATH", "LD_LIBRARY_PATH", "RETRACE_", "OMP_")  # what a bare environment has begins so


@dataclass(frozen=True)
class Place:
    """Where a trial runs."""

    variables: Mapping[str, str] = field(default_factory=dict)
    folder: str = "project"
    bare: bool = False  # without the other variables of this process
    command: tuple[str, ...] = ("dvc", "repro")
    prepare: Callable[[Path], object] | None = None  # given the project's folder


def link_states(folder: Path) -> None:
    """Keep checkpoints and locks on another disk, by a symbolic link."""
    elsewhere = folder.with_name("states elsewhere")
    elsewhere.mkdir()
    (folder / ".retrace").symlink_to(elsewhere)


def move_cache(folder: Path) -> None:
    """Give DVC a cache outside of the project."""
    Project(folder).run("dvc", "cache", "dir", "--local", str(folder.with_name("another cache")))


PLACES: Mapping[str, Place] = {
    "hash seed 0": Place({"PYTHONHASHSEED": "0"}),
    "hash seed 4242": Place({"PYTHONHASHSEED": "4242"}),
    "locale C": Place({"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
    "odd folder": Place(folder=ODD),
    "bare environment": Place(bare=True),
    "other caches": Place({"XDG_CACHE_HOME": f"{NOWHERE}/cache", "HF_HOME": f"{NOWHERE}/hub"}, prepare=move_cache),
    "linked states": Place(prepare=link_states),
    "time zone": Place({"TZ": "Pacific/Chatham"}),
    "terminal": Place({"TERM": "xterm", "COLUMNS": "40"}, command=("script", "-qec", "dvc repro", "/dev/null")),
}


def trial(whole: Path, folder: Path, place: Place) -> list[str]:
    """What is wrong with the results of a clone that ran in a place; `whole` ran in its usual place."""
    Project(whole).run("git", "clone", "-q", str(whole), str(folder / place.folder))
    if place.prepare:
        place.prepare(folder / place.folder)
    kept = {name: value for name, value in os.environ.items() if not place.bare or name.startswith(USUAL)}
    project = trials.cold(Project(folder / place.folder, {**kept, **place.variables}))
    wrong = trials.failure(project.run(*place.command, code=None))
    wrong += [f"made by a name: {path}" for path in folder.rglob("x")]
    return wrong + trials.differing(project.folder, whole) + trials.half_written(project.folder)


def campaign(whole: Path, folder: Path, count: int, _: Random) -> Iterator[trials.Outcome]:
    """Every place once, or the first of them."""
    for name in [*PLACES][:count]:
        yield trials.Outcome(name, trial(whole, folder / name, PLACES[name]))


if __name__ == "__main__":
    trials.main(campaign, __doc__, len(PLACES))
