"""`retrace doctor`: whether this checkout can run the pipeline, and what killed runs left behind in it.

Every check is cheap: nothing is imported that takes seconds, and of outputs only names and sizes are looked at.
"""

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from configparser import ConfigParser
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import psutil
import typer
import yaml

from retrace.compute.lease import visible_gpus
from retrace.core.errors import InputError
from retrace.core.files import read_object, size
from retrace.core.guard import PROJECT, holder, running
from retrace.core.settings import DATA_PARAMS, PARAMS, build, read_params, read_yaml
from retrace.results.grid import Grid

PINS, DVC = Path("requirements.txt"), Path(".dvc")
LOCKFILES = (Path("dvc.lock"), Path("data/dvc.lock"))
CELLS = ("models", "predictions")  # folders of task/method/seed
PARTIAL = ("data", "models", "predictions", "reports")  # where stages write
SHOWN = 3
REAPERS = ("init", "systemd", "tini", "dumb-init", "docker-init")
_MD5 = re.compile(r"[0-9a-f]{32}(\.dir)?")


@dataclass(frozen=True)
class Finding:
    """What a check found."""

    check: str
    found: str
    mend: str | None = None  # the command that mends it; null where nothing is wrong


def doctor(as_json: Annotated[bool, typer.Option("--json", help="print json")] = False) -> None:
    """Check environment, versions, settings, locks, leftovers, cache, space and GPUs of the checkout in this folder.

    Exit code 1 where something is wrong; the command that mends it is said.
    """
    if not Path("dvc.yaml").is_file() or not PARAMS.is_file():
        raise InputError("dvc.yaml: no such file; run it in the folder of a checkout")
    findings = [finding for check in CHECKS for finding in check()]
    wrong = [finding for finding in findings if finding.mend]
    if as_json:
        print(json.dumps({"ok": not wrong, "findings": [asdict(finding) for finding in findings]}, indent=2))
    else:
        for finding in findings:
            print(f"{'wrong' if finding.mend else 'ok':5}  {finding.check}: {finding.found}")
            if finding.mend:
                print(f"       mend: {finding.mend}")
    sys.exit(1 if wrong else 0)


def _environment() -> Iterator[Finding]:
    """Python, the programs, and whose code `retrace` is."""
    missing = [name for name in ("dvc", "git") if shutil.which(name) is None]
    if missing:
        yield Finding("environment", f"no {' and no '.join(missing)} among the programs", "source .venv/bin/activate")
    elif Path.cwd().resolve() != PROJECT.resolve():
        yield Finding("environment", f"retrace is that of {PROJECT}", "make setup && source .venv/bin/activate")
    else:
        yield Finding("environment", f"Python {sys.version.split()[0]} in {sys.prefix}")


def _versions() -> Iterator[Finding]:
    """What is installed, against the pins."""
    pins = dict(line.split("==") for line in PINS.read_text(encoding="utf-8").split() if "==" in line)
    others = []
    for name, pinned in pins.items():
        try:
            found = version(name).partition("+")[0]
        except PackageNotFoundError:
            found = "missing"
        if found != pinned:
            others.append(f"{name} is {found}, pinned {pinned}")
    if others:
        yield Finding("versions", _some(others), f"python -m pip install -r {PINS}")
    else:
        yield Finding("versions", f"the {len(pins)} pinned in {PINS}")


def _settings() -> Iterator[Finding]:
    from retrace.cli.check import check_settings  # here, as it reads every room's settings

    try:
        check_settings(read_yaml(PARAMS), read_yaml(DATA_PARAMS))
        yield Finding("settings", f"{PARAMS}, {DATA_PARAMS}")
    except (InputError, FileNotFoundError) as error:
        yield Finding("settings", str(error), "retrace check")


def _lockfiles() -> Iterator[Finding]:
    """What DVC recorded; it writes these files in place, so a kill may leave half of one."""
    for path in filter(Path.is_file, LOCKFILES):
        wrong = _damage(path)
        if wrong is None:
            yield Finding("recorded results", f"{path}: {len(_stages(path))} stages")
            continue
        tracked = subprocess.run(["git", "cat-file", "-e", f"HEAD:./{path}"], capture_output=True, check=False)
        mend = f"git checkout HEAD -- {path}" if tracked.returncode == 0 else f"rm {path}"
        yield Finding("recorded results", f"{path}: {wrong}", f"{mend} && dvc repro")


def _damage(path: Path) -> str | None:
    """What is wrong with a file of recorded results."""
    try:
        stages = _stages(path)
        for name, stage in stages.items():
            entries = [*stage.get("deps", ()), *stage.get("outs", ())]
            cut = any("" in part.values() for part in (stage, stage.get("params", {}), *entries))
            if cut or not stage["cmd"] or not all(_MD5.fullmatch(entry["md5"]) and entry["path"] for entry in entries):
                return f"{name} is incomplete"
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        return f"line {mark.line + 1} is not YAML" if mark else "not YAML"
    except UnicodeDecodeError:
        return "not text"
    except (AttributeError, KeyError, TypeError):
        return "incomplete"
    return None


def _stages(path: Path) -> dict[str, Any]:
    """The recorded stages by name; all values are text."""
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    return yaml.load(path.read_text(encoding="utf-8"), loader)["stages"]


def _locks() -> Iterator[Finding]:
    """Who runs here, and whom DVC believes to run here."""
    for each in running():
        yield from _run(each.path.stem, each.process)
    main = DVC / "tmp/lock"
    if main.is_file() and (found := holder(main)) is not None:
        yield Finding("locks", f"DVC works here as process {found.process}")
    path = DVC / "tmp/rwlock"
    try:
        entries = list(_entries(read_object(path)))
    except FileNotFoundError:
        entries = []
    except (InputError, AttributeError, KeyError, TypeError, ValueError):
        yield Finding("locks", f"{path} is damaged, with which DVC refuses to run", f"rm {path}")
        return
    strange = sorted({f"process {number} ({command})" for number, command in entries if not _is_dvc(number)})
    if strange:
        yield Finding("locks", f"{path} names {_some(strange)}, which runs no more", f"rm {path}")
    elif not running():
        yield Finding("locks", "no run goes on")


def _entries(lock: dict[str, Any]) -> Iterator[tuple[int, str]]:
    """Number and command of each process that DVC's rwlock names."""
    for found in lock.get("write", {}).values():
        yield int(found["pid"]), found["cmd"]
    for readers in lock.get("read", {}).values():
        yield from ((int(found["pid"]), found["cmd"]) for found in readers)


def _is_dvc(process: int) -> bool:
    """Whether a process runs and is a DVC; the number may be another program's by now."""
    try:
        return any(Path(part).name == "dvc" for part in psutil.Process(process).cmdline())
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True


def _run(name: str, number: int) -> Iterator[Finding]:
    """A run that goes on; it is an orphan where whatever started it is gone."""
    try:
        process = psutil.Process(number)
        orphan = not any(_watches(each) for each in process.parents())
    except psutil.NoSuchProcess:
        yield Finding("locks", f"{name} runs on another machine, or has just ended")
        return
    if orphan:
        yield Finding("orphans", f"{name} runs as process {number}; what started it is gone", "retrace stop")
    else:
        yield Finding("locks", f"{name} runs as process {number}")


def _watches(process: psutil.Process) -> bool:
    """Whether it is more than a stage, its launcher, the shell that DVC runs a command by, or who takes in orphans."""
    try:
        return (
            process.pid != 1
            and process.name() not in REAPERS
            and not any("stages." in part for part in process.cmdline())
        )
    except psutil.AccessDenied:
        return True


def _leftovers() -> Iterator[Finding]:
    """What killed runs had half written, and results of cells that params.yaml no longer lists."""
    if not running():
        partial = [path for folder in PARTIAL for path in Path(folder).glob("**/.*.partial")]
        if partial:
            yield Finding("leftovers", f"half-written: {_some(partial)}", _removal(partial))
    try:
        cells = build(Grid, read_params(), "finetune").cells
    except (InputError, FileNotFoundError):
        return  # as said of the settings
    found = [path for folder in CELLS for path in sorted(Path(folder).glob("*/*/*")) if path.name.isdigit()]
    stale = [path for path in found if path.relative_to(path.parts[0]).as_posix() not in cells]
    if stale:
        yield Finding("stale results", f"of cells that {PARAMS} does not list: {_some(stale)}", _removal(stale))
    else:
        yield Finding("stale results", "none")


def _cache() -> Iterator[Finding]:
    """Whether what DVC recorded is in its cache, whole by its sizes, and whether there is room for it again."""
    config = ConfigParser(interpolation=None)
    config.read([DVC / "config", DVC / "config.local"], encoding="utf-8")
    store = DVC / config.get("cache", "dir", fallback="cache") / "files/md5"
    paths = [path for path in LOCKFILES if path.is_file() and _damage(path) is None]
    outs = [out for path in paths for stage in _stages(path).values() for out in stage.get("outs", ()) if "md5" in out]
    cached = {store / out["md5"][:2] / out["md5"][2:]: out for out in outs}
    there = [path for path in cached if path.is_file()]
    cut = [path for path in there if not _is_whole(path, cached[path], store)]
    if cut:
        yield Finding(
            "cache", f"cut short: {_some([cached[path]['path'] for path in cut])}", f"{_removal(cut)} && dvc repro"
        )
    else:
        yield Finding("cache", f"{len(there)} of {len(cached)} recorded outputs; `dvc repro` makes the others again")
    whole, free = sum(int(out.get("size", 0)) for out in outs), shutil.disk_usage(".").free
    said = (
        f"{size(free)} are free; the recorded outputs take {size(whole)}, and as much in the cache; see retrace needs"
    )
    yield Finding("space", said, "dvc gc --workspace" if free < 2 * whole else None)


def _is_whole(path: Path, out: dict[str, str], store: Path) -> bool:
    """Whether a cached file has the recorded size, or the files that the list of a cached folder names."""
    if not out["md5"].endswith(".dir"):
        return path.stat().st_size == int(out.get("size", path.stat().st_size))
    try:
        files = [store / each["md5"][:2] / each["md5"][2:] for each in json.loads(path.read_bytes())]
    except (ValueError, KeyError, TypeError):
        return False
    return sum(file.stat().st_size if file.is_file() else 0 for file in files) == int(out.get("size", 0))


def _devices() -> Iterator[Finding]:
    """GPUs, whether torch can use them, and whether bf16 is fast here."""
    gpus = visible_gpus()
    spec = find_spec("torch")
    build_of = Path(spec.origin or "").with_name("version.py") if spec else None
    for_cuda = build_of is not None and re.search(r"^cuda.*= '", build_of.read_text(), re.MULTILINE) is not None
    if gpus and not for_cuda:
        yield Finding("devices", f"{len(gpus)} GPUs, which this torch cannot use", f"python -m pip install -r {PINS}")
    else:
        yield Finding("devices", f"{len(gpus) or 'no'} GPU{'s' if len(gpus) > 1 else ''} visible")
    yield Finding(
        "bf16", f"{'fast' if _has_fast_bf16(bool(gpus)) else 'not fast'} here, which is what `precision: auto` goes by"
    )


def _has_fast_bf16(on_gpu: bool) -> bool:
    """As torch tells it: on GPUs from compute capability 8 on, on processors with AVX512-BF16 or AMX."""
    if on_gpu:
        query = ("nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader")
        found = subprocess.run(query, capture_output=True, text=True, check=False).stdout.split()
        return bool(found) and all(float(each) >= 8 for each in found)
    processor = Path("/proc/cpuinfo")
    flags = processor.read_text().split() if processor.is_file() else ()
    return "avx512_bf16" in flags or "amx_tile" in flags


def _some(items: Sequence[Any]) -> str:
    """The first few of them."""
    more = f" and {len(items) - SHOWN} more" if len(items) > SHOWN else ""
    return ", ".join(map(str, items[:SHOWN])) + more


def _removal(paths: Sequence[Path]) -> str:
    return f"rm -r {shlex.join(map(str, paths))}"


CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    _environment, _versions, _settings, _lockfiles, _locks, _leftovers, _cache, _devices,
)  # fmt: skip
