"""The pipeline in other surroundings: hash seeds, locales, folders, caches, a terminal. Are the results the same bytes?

Every trial copies a toy project that has not run, changes something that should not matter and runs all stages as a
user would, without the tests' warm server. Every result is compared with those of the project in its usual place.

    python -m tests.campaigns.places
"""

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.campaigns import trials
from tests.toy import Project, copy_project

ODD = "déjà vu; $(touch x) 'é' & co"  # a folder's name
NOWHERE = "/nonexistent"
USUAL = ("PATH", "LD_LIBRARY_PATH")  # what a bare environment has beside the settings of Retrace


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


def trial(untouched: Path, whole: Path, folder: Path, place: Place) -> list[str]:
    """What is wrong with the results of a project that ran in a place; `whole` ran where it was made."""
    project = Project(shutil.copytree(untouched, folder / place.folder, symlinks=True))
    if place.prepare:
        place.prepare(project.folder)
    kept = {name: value for name, value in os.environ.items() if is_usual(name) or not place.bare}
    project = trials.cold(Project(project.folder, {**kept, **place.variables}))
    wrong = trials.failure(project.run(*place.command, code=None))
    wrong += [f"made by a name: {path}" for path in folder.rglob("x")]
    return wrong + trials.differing(project.folder, whole) + trials.half_written(project.folder)


def is_usual(variable: str) -> bool:
    """Whether even a bare environment has the variable."""
    return variable in USUAL or variable.startswith(("RETRACE_", "OMP_"))


def main() -> None:
    result = trials.Result("places", 1)
    with trials.campaign_folder() as folder:
        untouched = copy_project(folder / "untouched", git=True).folder
        whole = trials.fresh(untouched, folder / "whole")
        whole.run("dvc", "repro")
        for name, place in PLACES.items():
            wrong = trial(untouched, whole.folder, folder / name, place)
            print(name, wrong, flush=True)
            result.count(name, runs=1, right=not wrong)
    result.end()


if __name__ == "__main__":
    main()
