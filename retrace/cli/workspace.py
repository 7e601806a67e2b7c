"""A workspace for a study: a copy of the project with the study's settings, in which DVC runs its pipeline.

The workspace lies in .retrace/studies and stays: a rerun finds its results there, and a run that was killed goes on. It
shares DVC's cache with the project, and reads the user's data from the project's data/own.
"""

import filecmp
import io
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path
from typing import Any

from dvc.config import Config

from retrace.cli.settings import write_presets
from retrace.core.errors import InputError
from retrace.core.files import atomic_folder, write_json, write_text
from retrace.core.guard import CODE, handled, take
from retrace.core.records import WRITTEN as WRITTEN_BY_RUNS
from retrace.core.records import git
from retrace.core.settings import DATA_PARAMS, PARAMS, Seed, build, read_params
from retrace.study.published import PUBLISHED, STUDIES
from retrace.study.records import ORIGIN, RunOrigin

DVC, RETRACE = (sys.executable, "-m", "dvc"), (sys.executable, "-m", "retrace.cli.main")
WORKSPACES = Path(".retrace/studies")
OWN_DATA, REPORTS = Path("data/own"), Path("reports")
NOT_COPIED = ("reports/", "studies/", "data/own/")  # made by runs; of other studies; linked
PIPELINE, IGNORED, STAGES = Path("dvc.yaml"), Path(".dvcignore"), Path("studies/dvc.yaml")
WRITTEN = (PARAMS, DATA_PARAMS, PIPELINE, IGNORED)  # as the study has them
# Not of every pipeline.
OPTIONAL = ("data/${data}", "data/model", "models/pretrained", "reports/perplexity-details.json")
LIVE = "live"  # reports that are drawn while training lasts


def workspace(project: Path, name: str, small: bool, seed: int | None = None) -> Path:
    """The folder of a study's workspace."""
    ending = ("-small" if small else "") + ("" if seed is None else f"-seed-{seed}")
    return project / WORKSPACES / f"{name}{ending}"


def run_study(project: Path, name: str, small: bool, seed: int | None = None) -> int:
    """Run a study in its workspace and bring its reports to studies/NAME/reports; the exit code of the run.

    With a seed, pretraining and fine-tuning are from that one alone, and the reports stay in the workspace. As
    published, it first says what memory and disk it needs, and stops where that is clearly too little.

    Raises InputError where the study's settings are wrong or it is running already.
    """
    folder, study = workspace(project, name, small, seed), project / STUDIES / name
    lock = take(folder.with_name(f"{folder.name}.lock"))
    if lock is None:
        raise InputError(f"{STUDIES}/{name} is already running")
    with lock:
        origin = _origin(project)
        fill_workspace(project, study, folder, small, seed)
        code = 0 if small else subprocess.run([*RETRACE, "needs"], cwd=folder, check=False).returncode
        code = code or _repro(folder)
        if code == 0:
            of_run = RunOrigin(**origin, seed=build(Seed, read_params(folder), "seed"))
            write_json(folder / ORIGIN, of_run.to_json())
            if seed is None:
                _bring_back(folder / REPORTS, study / REPORTS)
    return code


def _origin(project: Path) -> dict[str, Any]:
    """The commit, and the files that are not as it has them, but for those that runs write and the user's data."""
    found = git("status", "--porcelain=v2", "--branch", "--", ".", *WRITTEN_BY_RUNS, ":!data/own", folder=project)
    lines = found.splitlines()
    commit = next(line.split()[-1] for line in lines if line.startswith("# branch.oid"))
    changed = [line.rsplit(" ", 1)[-1] for line in lines if not line.startswith("#")]
    return {"commit": None if commit == "(initial)" else commit, "changed": changed}


def fill_workspace(project: Path, study: Path, folder: Path, small: bool, seed: int | None = None) -> None:
    """Make or update a workspace; files that are as in the project stay untouched, so that DVC reruns nothing."""
    presets = [study / f"{name}.yaml" for name in ("params", "small")][: 1 + small]
    for preset in presets:
        if not preset.is_file():
            raise InputError(f"{preset.relative_to(project)}: no such file; the study has no small run")
    files = list(_project_files(project))
    code = {path.relative_to(folder) for room in CODE for path in (folder / room).rglob("*") if path.is_file()}
    for gone in code.difference(files):
        (folder / gone).unlink()
    for path in files:
        if path not in WRITTEN:
            _copy(project / path, folder / path)
    _copy(study / PUBLISHED, folder / STUDIES / study.name / PUBLISHED)
    _write_stages(project, study, folder)
    _write(folder / "study.yaml", f"study: {study.name}\nrun: {'small' if small else 'published'}\n")
    for path in (PARAMS, DATA_PARAMS):
        shutil.copyfile(project / path, folder / path)
    if seed is not None:
        presets.append(folder / "seed.yaml")
        _write(presets[-1], f"seed: {seed}\nfinetune: {{seeds: [{seed}]}}\n")
    write_presets(presets, folder)
    if (project / OWN_DATA).is_dir() and not (folder / OWN_DATA).is_symlink():
        (folder / OWN_DATA).symlink_to((project / OWN_DATA).resolve(), target_is_directory=True)
    _configure_dvc(project, folder)


def _project_files(project: Path) -> Iterator[Path]:
    """The project's own files, as they lie in the working tree."""
    for name in filter(None, git("ls-files", "-co", "--exclude-standard", "-z", folder=project).split("\0")):
        if not name.startswith(NOT_COPIED) and not name.endswith("dvc.lock") and (project / name).is_file():
            yield Path(name)


def _copy(source: Path, target: Path) -> None:
    if not target.is_file() or not filecmp.cmp(source, target, shallow=False):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)


def _write(path: Path, text: str) -> None:
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        write_text(path, text)


def _write_stages(project: Path, study: Path, folder: Path) -> None:
    """The study's pipeline, its own or else the project's, and the stage that compares."""
    own, stages = study / PIPELINE, (project / STAGES).read_text(encoding="utf-8")
    _copy(own if own.is_file() else project / PIPELINE, folder / PIPELINE)
    if own.is_file():
        absent = [dep for dep in OPTIONAL if dep not in own.read_text(encoding="utf-8")]
        stages = "".join(line for line in stages.splitlines(keepends=True) if line.strip(" -\n") not in absent)
    _write(folder / STAGES, stages)
    _write(folder / IGNORED, (project / IGNORED).read_text(encoding="utf-8") + f"!/{STUDIES}/\n")


def _configure_dvc(project: Path, folder: Path) -> None:
    """DVC without git, with the project's configuration and cache."""
    config = ConfigParser(interpolation=None)
    config.read([project / ".dvc/config", project / ".dvc/config.local"], encoding="utf-8")
    cache = Config(str(project / ".dvc"))["cache"].get("dir", project / ".dvc/cache")
    page = str(project / ".dvc/plots/page.html")  # in the project's configuration it is relative to its own folder
    config.read_dict({"core": {"no_scm": "true"}, "cache": {"dir": str(cache)}, "plots": {"html_template": page}})
    text = io.StringIO()
    config.write(text)
    _write(folder / ".dvc/config.local", text.getvalue())


def _repro(folder: Path) -> int:
    """Run the pipeline up to the comparison, its output shown as it comes."""
    with handled(lambda *_: None, [signal.SIGINT]):  # DVC and the stage get it too, and end in their own way
        return subprocess.run([*DVC, "repro", f"{STAGES}:compare"], cwd=folder, check=False).returncode


def _bring_back(source: Path, target: Path) -> None:
    """Copy the reports, the study's page beside them."""
    with atomic_folder(target) as folder:
        shutil.copytree(source, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(LIVE, "study"))
        shutil.copytree(source / "study", folder, dirs_exist_ok=True)
