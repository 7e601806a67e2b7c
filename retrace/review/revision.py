"""A revision's reports, predictions and settings, by DVC: from the working tree, its cache or its remote."""

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from dvc.api import DVCFileSystem
from dvc.exceptions import DvcException
from dvc_data.index import DataIndexDirError
from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from retrace.core.errors import InputError
from retrace.core.origin import try_git
from retrace.core.records import RunRecord
from retrace.core.settings import DATA_PARAMS, PARAMS
from retrace.evaluation.records import DETAILS, METRICS, Details
from retrace.perplexity.measures import PERPLEXITY
from retrace.review.headlines import Headlines, of_metrics, of_perplexity

RUNS = Path("reports/runs")
DEFAULTS = ("origin/HEAD", "origin/main", "origin/master", "main", "master")
ABSENT = (
    OSError,
    DvcException,
    DataIndexDirError,
)  # of a file that is neither in the working tree nor in DVC's cache or remote


class Revision:
    """A commit of this project, or its working tree."""

    def __init__(self, commit: str | None = None) -> None:
        """`commit` is its hash; None for the working tree."""
        self._files, self._commit = DVCFileSystem(rev=commit), commit

    @cached_property
    def headlines(self) -> Headlines:
        """The headline figures; none where it has none."""
        found, read = Headlines(), {METRICS: of_metrics, PERPLEXITY: of_perplexity}
        for path, of in read.items():
            values = self._json(path)
            found = found.and_of(of(values)) if isinstance(values, dict) else found
        return found

    @cached_property
    def details(self) -> Details | None:
        """Its scores.json; None where that is not at hand, or an earlier version wrote it."""
        try:
            return Details.from_json(self._json(DETAILS) or {})
        except ValidationError:
            return None

    @cached_property
    def params(self) -> dict[str, Any]:
        """params.yaml and data/params.yaml."""
        found: dict[str, Any] = {}
        for path in (PARAMS, DATA_PARAMS):
            try:
                found |= YAML(typ="safe").load(self.read(path) or b"") or {}
            except YAMLError:
                raise InputError(f"{path}: not YAML in one of the revisions") from None
        return found

    @cached_property
    def runs(self) -> dict[str, RunRecord]:
        """Time and memory, by run: "pretrain", "sst2/full/1"."""
        try:
            names = self._files.find(RUNS.as_posix()) if self._files.isdir(RUNS.as_posix()) else []
        except ABSENT:
            return {}
        paths = sorted(Path(name) for name in names if name.endswith(".json"))
        found = {path.relative_to(RUNS).with_suffix("").as_posix(): self._json(path) for path in paths}
        return {name: of for name, values in found.items() if (of := _record(values)) is not None}

    @cached_property
    def stale_stages(self) -> list[str]:
        """Those of the working tree that have to run again; a commit is taken as it is."""
        try:
            return [] if self._commit else sorted(self._files.repo.status())
        except DvcException:
            return []

    def read(self, path: Path) -> bytes | None:
        """A file; None where it is not at hand."""
        try:
            content: Any = self._files.cat_file(path.as_posix())
        except ABSENT:
            return None
        return content

    def fetch(self, folder: Path, to: Path) -> bool:
        """Copy the files of a folder; False where it is not at hand."""
        try:
            names = self._files.find(folder.as_posix())
        except ABSENT:
            return False
        found = {Path(name).name: self.read(Path(name)) for name in names}
        for name, content in found.items():
            (to / name).write_bytes(content or b"")
        return bool(found) and None not in found.values()

    def _json(self, path: Path) -> Any:
        content = self.read(path)
        try:
            return None if content is None else json.loads(content)
        except ValueError:
            return None  # of a merge conflict, say


def _record(values: Any) -> RunRecord | None:
    try:
        return RunRecord.from_json(values)
    except ValidationError:
        return None


def commit_of(base: str) -> str:
    """The commit that a name stands for.

    Raises InputError where there is none, which in a shallow clone may have to be fetched.
    """
    found = try_git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{base}^{{commit}}")
    if found is None:
        is_shallow = try_git("rev-parse", "--is-shallow-repository") == "true"
        hint = ": this clone is shallow; git fetch --depth=1 origin REVISION brings one" if is_shallow else ""
        raise InputError(f"--base: {base!r} is no revision of this repository{hint}")
    return found


def default_base() -> tuple[str, str]:
    """The revision to compare with where none is named, and what it is.

    On a branch it is where that left the default branch (of origin, else main or master), on the default branch
    itself the last commit. In a shallow clone, which does not know where, it is the default branch as it is now.
    """
    branch = try_git("symbolic-ref", "--quiet", "--short", "HEAD")
    default = next((name for name in DEFAULTS if try_git("rev-parse", "--verify", "--quiet", name)), None)
    if default == "origin/HEAD":
        default = try_git("rev-parse", "--abbrev-ref", default)
    if default is None or branch == default.removeprefix("origin/"):
        return "HEAD", "the last commit"
    common = try_git("merge-base", "HEAD", default)
    if common is None:
        return default, f"{default}, as this clone does not know where the branch left it"
    return common, f"where this branch left {default}"


def flat(values: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Settings by dotted key."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        name = f"{above}{key}"
        found |= flat(value, f"{name}.") if isinstance(value, Mapping) and value else {name: value}
    return found
