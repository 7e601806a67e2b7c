"""A revision's headline figures, reports, predictions and settings, which DVC reads from the working tree, its cache or
its remote."""

import json
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from dvc.api import DVCFileSystem
from dvc.exceptions import DvcException
from dvc.fs import GitFileSystem, get_cloud_fs
from dvc.lock import LockError
from dvc.repo import Repo
from dvc.scm import SCM
from dvc_data.index import DataIndexDirError

from retrace.core.errors import InputError, first_line
from retrace.core.paths import LOCKFILES, QUESTIONS, TASKS, task_and_part
from retrace.core.records import Record, RunRecord, git, try_git
from retrace.core.settings import DATA_PARAMS, PARAMS, parse_yaml, with_data
from retrace.evaluation.records import DATA, DETAILS, METRICS, Details, MethodDetails, Metrics, TaskMetrics
from retrace.perplexity.measures import LANGUAGE_MODEL, PERPLEXITY, Perplexities
from retrace.results.grid import RUNS, SQUAD, Grid, Kind

FIGURE, LOCK = "perplexity", LOCKFILES[0]
R = TypeVar("R", bound=Record)
DEFAULTS = ("origin/HEAD", "origin/main", "origin/master", "main", "master")
# Raised for a file that is neither here nor in DVC's cache or remote.
ABSENT = (OSError, DvcException, DataIndexDirError)
BUSY = "is busy"  # in DVC's message if a running stage writes what was asked about
RUNNING = "a stage that runs now"
# A fetch into such a clone may leave no name but FETCH_HEAD, not even that of a tag.
SHALLOW = "this clone is shallow; git fetch --depth=1 origin REVISION, then --base FETCH_HEAD"


class Place(NamedTuple):
    """The address of a figure: "sst2", "full" and "accuracy", or "valid", "masked" and "perplexity"."""

    of: str  # a task, or a split of the running text
    who: str  # a method, a baseline, or a kind of perplexity
    figure: str
    is_baseline: bool = False


def have_other_data(folder: Path, sides: Sequence["Revision"]) -> bool:
    """Whether two revisions' models were evaluated with data in a folder that is known to differ."""
    old, new = (side.inputs.get(folder.as_posix()) for side in sides)
    return old is not None and new is not None and old != new


def kind_of(task: str, sides: Sequence["Revision"]) -> Kind:
    """The kind of a task, which one side's settings may no longer list."""
    matrices = [side.params.get("finetune") or {} for side in sides]
    questions = [name for matrix in matrices for name in matrix.get("questions", (SQUAD,)) or ()]
    return "question_answering" if task_and_part(task)[0] in questions else "classification"


def flags_file(who: str) -> str:
    """The file with the flags of a model, or of the data."""
    return (PERPLEXITY if who == LANGUAGE_MODEL else METRICS).as_posix()


def data_of(task: str, sides: Sequence["Revision"]) -> Path:
    """The folder of a task's data."""
    folders: dict[Kind, Path] = {"classification": TASKS, "question_answering": QUESTIONS}
    return folders[kind_of(task, sides)] / task_and_part(task)[0]


class Revision:
    """A commit of this project, or its working tree."""

    def __init__(self, commit: str | None = None) -> None:
        """`commit` is its hash; None for the working tree."""
        self._files, self._commit = DVCFileSystem(commit and _project_at(commit)), commit
        self.unasked = _leave_out_remote(self._files.repo)  # why DVC's remote is not asked; empty if it is

    @cached_property
    def _tasks(self) -> dict[str, TaskMetrics]:
        return (self._record(Metrics, METRICS) or Metrics(tasks={})).tasks

    @cached_property
    def _text(self) -> Perplexities:
        return self._record(Perplexities, PERPLEXITY) or Perplexities(splits={})

    @cached_property
    def figures(self) -> dict[Place, float]:
        """The headline figures; none if the revision has none."""
        found: dict[Place, float] = {}
        for task, metrics in self._tasks.items():
            for is_baseline, side in ((False, metrics.methods), (True, metrics.baselines)):
                for who, values in side.items():
                    found |= {Place(task, who, name, is_baseline): value for name, value in values.items()}
        for part, measures in self._text.splits.items():
            known = {who: value for who, value in measures.items() if value is not None}
            found |= {Place(part, who, FIGURE, who == "unigram"): value for who, value in known.items()}
        return found

    @property
    def unread(self) -> list[str]:
        """The files of headline figures that are there but not valid, as with a merge conflict or another layout."""
        kinds: dict[Path, type[Record]] = {METRICS: Metrics, PERPLEXITY: Perplexities}
        return [path.as_posix() for path, kind in kinds.items() if self.read(path) and self._record(kind, path) is None]

    @property
    def flaggable(self) -> set[tuple[str, str]]:
        """What flags are about: the models of the headline figures and the data, by task or split."""
        models = {(task, who) for task, metrics in self._tasks.items() for who in (*metrics.methods, DATA)}
        return models | {(part, LANGUAGE_MODEL) for part in self._text.splits}

    def flags_of(self, listed: Set[tuple[str, str]]) -> dict[str, int]:
        """The flags of these models and data, as readers see them, and how many seeds have each: 1 for data."""
        flags = {(task, who): each for task, metrics in self._tasks.items() for who, each in metrics.flags.items()}
        flags |= {(part, LANGUAGE_MODEL): each for part, each in self._text.flags.items()}
        return {" ".join((*place, flag)): count for place in flags if place in listed
                for flag, count in flags[place].items()}  # fmt: skip

    @cached_property
    def details(self) -> Details | None:
        """Its scores.json, if available."""
        return self._record(Details, DETAILS)

    def method(self, place: Place) -> MethodDetails | None:
        """The details of a method on a task, if available."""
        task = self.details.tasks.get(place.of) if self.details else None
        return task.methods.get(place.who) if task else None

    def notes_on(self, task: str) -> Mapping[str, str]:
        """The notes on how a task was scored, if its details are available."""
        found = self.details.tasks.get(task) if self.details else None
        return found.notes if found else {}

    def seeds_of(self, method: MethodDetails | None) -> int:
        """How many seeds a method has; by the settings where its details are not available."""
        return len(method.seeds) if method else len((self.params.get("finetune") or {}).get("seeds") or [1])

    @cached_property
    def params(self) -> dict[str, Any]:
        """params.yaml and data/params.yaml."""
        found = []
        for path in (PARAMS, DATA_PARAMS):
            content = self.read(path)
            try:
                found.append(parse_yaml(content.decode(errors="replace"), path) if content else {})
            except InputError as error:
                raise InputError(f"{error}; in {self._commit or 'the working tree'}") from None
        return with_data(*found)

    @cached_property
    def inputs(self) -> dict[str, str]:
        """The digest of each file and folder that a stage read, by path, from dvc.lock; none if it is not valid.

        DVC keeps entries of cells that are no longer listed, which may have read other data; other stages take
        precedence.
        """
        found = {}
        with suppress(InputError, KeyError):
            stages = parse_yaml((self.read(LOCK) or b"").decode(errors="replace"), LOCK)["stages"]
            for name in sorted(stages, key=self._is_in_force):
                found |= {read["path"]: read["md5"] for read in stages[name].get("deps", ())}
        return found

    def _is_in_force(self, stage: str) -> bool:
        """Whether a stage of dvc.lock belongs to no matrix, or is one of the cells that the settings list."""
        _, is_of_matrix, cell = stage.partition("@")
        return not is_of_matrix or cell in self._cells

    @cached_property
    def _cells(self) -> set[str]:
        """The cells by the names of their stages; none if the settings are wrong."""
        with suppress(InputError):
            return {cell.stage for cell in Grid.read(self.params).cells}
        return set()

    @cached_property
    def runs(self) -> dict[str, RunRecord]:
        """Time and memory by run: "pretrain", "sst2/full/1"."""
        paths = sorted(path for path in self._listed(RUNS) if path.suffix == ".json")
        found = {path.relative_to(RUNS).with_suffix("").as_posix(): self._record(RunRecord, path) for path in paths}
        return {name: record for name, record in found.items() if record is not None}

    @cached_property
    def stale_stages(self) -> list[str]:
        """The stages of the working tree that have to run again; a commit is taken as it is."""
        try:
            changed = {} if self._commit else self._files.repo.status()
        except LockError as error:
            return [RUNNING] if BUSY in str(error) else []
        except DvcException:
            return []
        # Names that end with .dvc are files that `dvc add` tracks.
        return sorted(
            name for name, changes in changed.items() if not name.endswith(".dvc") and any(map(_is_change, changes))
        )

    def read(self, path: Path) -> bytes | None:
        """The content of a file, if available."""
        try:
            content: Any = self._files.cat_file(path.as_posix())
        except ABSENT:
            return None
        return content

    def fetch(self, folder: Path, to: Path) -> bool:
        """Copy the files of a folder; False if one is not available, or there are none."""
        found = {path.name: self.read(path) for path in self._listed(folder)}
        for name, content in found.items():
            (to / name).write_bytes(content or b"")
        return bool(found) and None not in found.values()

    def _listed(self, folder: Path) -> list[Path]:
        """The files under a folder, as far as they are known."""
        try:
            return [Path(name) for name in self._files.find(folder.as_posix())]
        except ABSENT:
            return []

    def _record(self, kind: type[R], path: Path) -> R | None:
        """A record, if available and valid; it may have a merge conflict or be of another version of Retrace."""
        try:
            return kind.from_json(json.loads(self.read(path) or b"null"))
        except ValueError:  # of json, or pydantic's
            return None


def _is_change(change: Any) -> bool:
    """Whether what DVC reports about a stage is a change, rather than files that are missing here."""
    if not isinstance(change, dict):
        return True  # the command changed
    return any(
        state not in ("deleted", "not in cache") and not _is_bare(Path(path))
        for files in change.values() for path, state in files.items()
    )  # fmt: skip


def _is_bare(folder: Path) -> bool:
    """Whether there is a folder, but none of its files, as in a fresh clone."""
    return folder.is_dir() and not any(path.is_file() for path in folder.rglob("[!.]*"))


def _leave_out_remote(repo: Repo) -> str:
    """Have DVC do without its default remote if the client for that is not installed; returns why, or nothing.

    Otherwise it would read nothing at all, not even what its cache has.
    """
    name = repo.config["core"].get("remote")
    try:
        if name:
            get_cloud_fs(repo.config, name=name)
    except ImportError as error:
        del repo.config["core"]["remote"]
        return f"the remote {name} was not used: {first_line(error)}"
    except DvcException:  # DVC is configured wrongly, which other commands report
        pass
    return ""


def _project_at(commit: str) -> Repo:
    """The project at a commit. By a commit alone, DVC opens the top of the git repository, which may be above it."""
    scm = SCM(".")
    folder = Path("/", git("rev-parse", "--show-prefix"))
    return Repo(folder.as_posix(), fs=GitFileSystem(scm=scm, rev=commit), scm=scm, uninitialized=True)


def commit_of(base: str) -> str:
    """The hash of the commit that a name refers to.

    Raises InputError if there is none; in a shallow clone it may have to be fetched.
    """
    found = try_git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{base}^{{commit}}")
    is_pattern = any(sign in base for sign in "*?[")
    if not found and not is_pattern:  # DVC's experiments are refs of its own
        found = try_git("for-each-ref", "--count=1", "--format=%(objectname)", f"refs/exps/*/*/{base}")
    if not found:
        git("rev-parse", "--git-dir")  # raises git's own error if there is no repository
        hint = f": {SHALLOW}" if _is_shallow() else ""
        raise InputError(f"--base: {base!r} is not a revision of this repository{hint}")
    return found


def default_base() -> tuple[str, str]:
    """The revision to compare with by default, and what it is.

    On a branch: where it left the default branch of origin, else main or master, or a commit of that branch here that
    was not pushed; on the default branch itself: the last commit. A shallow clone does not know where a branch left;
    there it is the default branch as it is now. Raises InputError if it has no default branch either.
    """
    branch = try_git("symbolic-ref", "--quiet", "--short", "HEAD")
    default = next((name for name in DEFAULTS if try_git("rev-parse", "--verify", "--quiet", name)), None)
    if default == "origin/HEAD":
        default = try_git("rev-parse", "--abbrev-ref", default)
    if default is None and _is_shallow():
        raise InputError(f"--base: the default branch is not here: {SHALLOW}")
    if default is None or branch == (own := default.removeprefix("origin/")):
        return "HEAD", "the last commit"
    common = try_git("merge-base", "HEAD", default, own) or try_git("merge-base", "HEAD", default)
    if common is None:
        return default, f"{default}, as this clone does not know where the branch left it"
    return common, f"where this branch left {own}"


def _is_shallow() -> bool:
    """Whether git has only the last commits of this clone."""
    return try_git("rev-parse", "--is-shallow-repository") == "true"
