"""`retrace doctor`: whether this checkout can run the pipeline, and what killed runs left behind in it.

Every check is cheap: nothing slow is imported, and only names and sizes of outputs are looked at. Only if training left
saved states is DVC asked whether anything is out of date, which takes seconds.
"""

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import BaseModel, Field

from retrace.cli.check import check_ready, tasks_of
from retrace.cli.dvc_files import cache_folder, dvc_config, lock_fault
from retrace.cli.main import some_of
from retrace.compute.lease import visible_gpus
from retrace.core.errors import InputError, first_line, printable
from retrace.core.files import size
from retrace.core.guard import holder, running
from retrace.core.paths import LOCKFILES, PROJECT, QUESTIONS, STATES, TASKS, named_checkpoint, require_checkout
from retrace.core.records import git, installed, try_git
from retrace.core.settings import DATA_PARAMS, PARAMS, build, build_file, read_params, read_yaml
from retrace.results.grid import PREDICTIONS, RUNS, WEIGHTS, Grid

PINS = Path("requirements.txt")
INSTALL = f"python -m pip install -r {PINS}"
# pip takes an installed 2.13.0+cpu for the pinned 2.13.0, and would keep it.
REPLACE = f"python -m pip uninstall --yes torch && {INSTALL}"
CELLS = (WEIGHTS, PREDICTIONS, RUNS, Path("reports/live"))  # with task/method/seed in them
PARTIAL = ("data", "models", "predictions", "reports")  # where stages write
UP_TO_DATE = (sys.executable, "-m", "dvc", "status", "--quiet")  # exit code 0 if nothing is out of date


@dataclass(frozen=True)
class Finding:
    """What a check found."""

    check: str
    found: str
    fix: str | None = None  # the command that fixes it; null if nothing is wrong


class Output(BaseModel):
    """An output of a stage."""

    path: str
    md5: Annotated[str, Field(pattern=r"^[0-9a-f]{32}(\.dir)?$")]
    size: int | None = None


class Stage(BaseModel):
    """The parts of DVC's record of a stage that are used here."""

    outs: list[Output] = []


class LockFile(BaseModel):
    """A dvc.lock."""

    stages: dict[str, Stage]


def doctor(as_json: Annotated[bool, typer.Option("--json", help="print json")] = False) -> None:
    """Check this checkout: environment, settings, stages, recorded results, leftovers, cache, space, remote, GPUs.

    Exit code 1 if something is wrong; each problem comes with the command that fixes it.
    """
    require_checkout()
    findings = [finding for check in CHECKS for finding in _findings(check)]
    wrong = [finding for finding in findings if finding.fix]
    if as_json:
        print(json.dumps({"ok": not wrong, "findings": [asdict(finding) for finding in findings]}, indent=2))
    else:
        for finding in findings:
            print(printable(f"{'wrong' if finding.fix else 'ok':5}  {finding.check}: {finding.found}"))
            if finding.fix:
                print(printable(f"       fix: {finding.fix}"))
    sys.exit(1 if wrong else 0)


def _findings(check: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    try:
        yield from check()
    except InputError as error:  # DVC's configuration cannot be read
        is_committed = try_git("diff", "--quiet", "HEAD", "--", ".dvc/config") is not None
        local = Path(".dvc/config.local")
        fix = f"mv {local} {local}.damaged" if is_committed and local.is_file() else "git checkout HEAD -- .dvc/config"
        yield Finding(check.__name__.strip("_"), str(error), fix)


def _environment() -> Iterator[Finding]:
    """Python, the programs, and which checkout `retrace` is installed from."""
    missing = [name for name in ("dvc", "git") if shutil.which(name) is None]
    if missing:
        yield Finding("environment", f"{' and '.join(missing)} not on the PATH", "source .venv/bin/activate")
    elif Path.cwd().resolve() != PROJECT.resolve():
        text = f"retrace is installed from another checkout, {PROJECT}"
        yield Finding("environment", text, "make setup && source .venv/bin/activate")
    else:
        yield _repository() or Finding("environment", f"Python {sys.version.split()[0]} in {sys.prefix}")


def _repository() -> Finding | None:
    """What keeps git from reading the repository, which DVC needs."""
    try:
        git("rev-parse", "--git-dir")
    except InputError as error:
        found = re.search(r"dubious ownership in repository at '(.+)'", str(error))
        if found:  # the folder is another user's, as often in a container; the project may be a part of the repository
            trust = f"git config --global --add safe.directory {shlex.quote(found[1])}"
            return Finding("environment", str(error), trust)
        return Finding("environment", "this folder is not in a git repository, which DVC needs", "git init")
    return None


def _versions() -> Iterator[Finding]:
    """Installed versions against the pins."""
    if not PINS.is_file():
        yield Finding("versions", f"{PINS} is missing", f"git checkout HEAD -- {PINS}")
        return
    text = PINS.read_text(encoding="utf-8")
    if "<<<<<<< " in text:
        yield Finding("versions", f"{PINS} has a merge conflict", f"git checkout HEAD -- {PINS}")
        return
    pins = dict(line.split("==") for line in text.split() if "==" in line)
    found = {name: installed(name).partition("+")[0] for name in pins}
    others = [f"{name} is {found[name]}, pinned {pinned}" for name, pinned in pins.items() if found[name] != pinned]
    yield Finding("versions", some_of(others) or f"the {len(pins)} pinned in {PINS}", INSTALL if others else None)


def _settings() -> Iterator[Finding]:
    try:
        check_ready()
        yield Finding("settings", f"{PARAMS}, {DATA_PARAMS}")
    except (InputError, FileNotFoundError) as error:
        yield Finding("settings", str(error), f"git diff HEAD -- {PARAMS} {DATA_PARAMS}")


def _pipelines() -> Iterator[Finding]:
    """The files of the stages, which a merge may leave with conflict markers."""
    for path in filter(Path.is_file, [lock.with_suffix(".yaml") for lock in LOCKFILES]):
        try:
            read_yaml(path)
        except InputError as error:
            yield Finding("stages", str(error), f"git diff HEAD -- {path}")


def _lockfiles() -> Iterator[Finding]:
    """The lock files, which DVC writes in place, so that a kill may cut one short."""
    for path in filter(Path.is_file, LOCKFILES):
        try:
            yield Finding("recorded results", f"{path}: {len(_stages(path))} stages")
        except InputError as error:
            is_committed = try_git("cat-file", "-e", f"HEAD:./{path}") is not None
            fix = f"git checkout HEAD -- {path}" if is_committed else f"rm {path}"
            yield Finding("recorded results", str(error), f"{fix} && dvc repro")


def _stages(path: Path) -> dict[str, Stage]:
    """The stages of a lock file, by name.

    Raises InputError if it is cut short or damaged.
    """
    if not path.read_bytes().endswith(b"\n"):
        raise InputError(f"{path}: incomplete")
    return build_file(LockFile, path).stages


def _locks() -> Iterator[Finding]:
    """Which runs are in progress here, and which ones DVC believes to be."""
    runs = running()
    for run in runs:
        where = f" as process {run.process} of {run.host}" if run.process else ""  # it has yet to write its ID
        yield Finding("locks", f"{run.path.stem} runs{where}")
    if (found := holder(Path(".dvc/tmp/lock"))) is not None:
        yield Finding("locks", f"DVC is running here as process {found.process}")
    if fault := lock_fault():
        yield Finding("locks", f"{fault}, so DVC will not start", "retrace check")
    elif not runs:
        yield Finding("locks", "nothing is running")


def _leftovers() -> Iterator[Finding]:
    """Half-written files of killed runs, and data and results of entries that params.yaml no longer lists."""
    partial = [] if running() else [path for folder in PARTIAL for path in Path(folder).glob("**/.*.partial")]
    if partial:
        yield Finding("leftovers", f"half-written: {some_of(partial)}", _removal(partial))
    try:
        params = read_params()
        cells = {cell.path for cell in Grid.read(params).cells}
        tasks, checkpoints = tasks_of(params), build(dict[str, Any], params, "checkpoints")
    except InputError:
        return  # `_settings` reports it
    found = [(path, folder) for folder in CELLS for path in sorted(folder.glob("*/*/*")) if path.stem.isdigit()]
    stale = [path for path, folder in found if path.relative_to(folder).with_suffix("") not in cells]
    # A hidden folder is half-written; while a run is in progress, it may be what that writes.
    data = [path for folder in (TASKS, QUESTIONS) for path in sorted(folder.glob("[!.]*/"))]
    stale += [path for path in data if path.name not in tasks]
    # Every fine-tuning run depends on the folder of all checkpoints; in a fresh clone it has only the listed ones.
    stale += [path for path in sorted(named_checkpoint("").glob("[!.]*/")) if path.name not in checkpoints]
    listed = f"{PARAMS} or {DATA_PARAMS}"
    text = f"of tasks, checkpoints and fine-tuning runs that are not in {listed}: {some_of(stale)}" if stale else "none"
    yield Finding("stale results", text, _removal(stale))


def _states() -> Iterator[Finding]:
    """Saved states, with their locks, from which stopped training resumes; useless if nothing is out of date.

    A run uses and removes only states of its own settings, so those of abandoned settings stay.
    """
    left = [path for path in sorted(STATES.glob("*")) if not holder(STATES / f"{path.name.removesuffix('.lock')}.lock")]
    folders = [path for path in left if path.is_dir()]
    if not folders:
        return
    taken = sum(file.stat().st_size for folder in folders for file in folder.rglob("*") if file.is_file())
    text = f"{some_of([folder.name for folder in folders])}: {size(taken)}"
    if subprocess.run(UP_TO_DATE, capture_output=True, check=False).returncode:
        yield Finding("saved states", f"{text}; `dvc repro` resumes from those with its settings and code")
    else:
        text += ", of abandoned settings or code, as nothing is out of date"
        yield Finding("saved states", text, _removal(left))


def _cache() -> Iterator[Finding]:
    """Whether what DVC recorded is in its cache, complete by size, and whether there is room for the rest."""
    outs: dict[str, Output] = {}
    committed = (try_git("ls-files", "reports") or "").splitlines()  # metrics.json, for example, is not cached
    for path in LOCKFILES:
        with suppress(InputError, FileNotFoundError):
            outs |= {
                out.md5: out for stage in _stages(path).values() for out in stage.outs if out.path not in committed
            }
    store = cache_folder()
    cached = {digest for digest in outs if _cached(store, digest).is_file()}
    if cut := [out.path for digest, out in outs.items() if digest in cached and not _is_whole(store, out)]:
        yield Finding("cache", f"cut short: {some_of(cut)}", "retrace check --cache && dvc repro")
    else:
        missing = "; `retrace repro` pulls or makes the others" if len(cached) < len(outs) else ""
        yield Finding("cache", f"{len(cached)} of {len(outs)} recorded outputs{missing}")
    needed = sum(out.size or 0 for digest, out in outs.items() if digest not in cached)
    free = shutil.disk_usage(".").free
    text = f"{size(free)} is free; outputs not in the cache need {size(needed)} there, and as much again here"
    if free >= 2 * needed:
        yield Finding("space", text)
    else:
        yield Finding("space", f"{text}; outputs that only other commits use can be removed", "dvc gc --workspace")


def _cached(store: Path, digest: str) -> Path:
    return store / digest[:2] / digest[2:]


def _is_whole(store: Path, out: Output) -> bool:
    """Whether a cached file has the recorded size or, if it lists the files of a folder, these files have."""
    files = [_cached(store, out.md5)]
    if out.md5.endswith(".dir"):
        try:
            files = [_cached(store, each["md5"]) for each in json.loads(files[0].read_bytes())]
        except (ValueError, KeyError, TypeError):
            return False
    return out.size in (None, sum(file.stat().st_size for file in files if file.is_file()))


def _remote() -> Iterator[Finding]:
    """Whether the default remote's client is installed, and whether DVC verifies digests, which it does if told to."""
    from dvc_objects.fs import get_fs_cls  # here, as it takes a moment to import

    config = dvc_config()
    name = config["core"].get("remote")
    if name in config["remote"]:
        try:
            get_fs_cls(config["remote"][name])
        except ImportError as error:  # S3's, for example, is not pinned
            text = first_line(error)
            client = " ".join(re.findall(r"dvc-\w+", text))
            yield Finding("remote", f"{name}: {text}", f"python -m pip install -c {PINS} {client}")
        is_checked = config["remote"][name].get("verify", False)
        own: Any = config.load_one("local")
        which = f"{'--local ' if name in own['remote'] else ''}{shlex.quote(name)}"
        text = f"{name}: downloads are {'' if is_checked else 'not '}checked against their MD5"
        yield Finding("remote", text, None if is_checked else f"dvc remote modify {which} verify true")


def _devices() -> Iterator[Finding]:
    """GPUs, and whether torch can use them."""
    gpus = visible_gpus()
    is_useless = bool(gpus) and installed("torch").endswith("+cpu")
    text = f"{len(gpus) or 'no'} GPU{'s' if len(gpus) > 1 else ''} visible"
    text += ", which this torch cannot use" if is_useless else ""
    yield Finding("devices", text, REPLACE if is_useless else None)


def _removal(paths: Sequence[Path]) -> str | None:
    return f"rm -r {shlex.join(map(str, paths))}" if paths else None


CHECKS = (
    _environment, _versions, _settings, _pipelines, _lockfiles, _locks, _leftovers, _states, _cache, _remote, _devices,
)  # fmt: skip
