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

from dvc.config import Config

from retrace.cli.preset import write_presets
from retrace.core.errors import InputError
from retrace.core.files import atomic_folder, write_text
from retrace.core.guard import CODE, take
from retrace.core.settings import DATA_PARAMS, PARAMS
from retrace.study.published import PUBLISHED, STUDIES

DVC, RETRACE = (sys.executable, "-m", "dvc"), (sys.executable, "-m", "retrace.cli.main")
WORKSPACES = Path(".retrace/studies")
OWN_DATA, REPORTS = Path("data/own"), Path("reports")
NOT_COPIED = ("reports/", "studies/", "data/own/")  # made by runs; of other studies; linked
PIPELINE, IGNORED, STAGES = Path("dvc.yaml"), Path(".dvcignore"), Path("studies/dvc.yaml")
WRITTEN = (PARAMS, DATA_PARAMS, PIPELINE, IGNORED)  # as the study has them
OPTIONAL = (
    "data/${data}",
    "data/model",
    "models/pretrained",
    "reports/perplexity-details.json",
)  # not of every pipeline
LIVE = "live"  # reports that are drawn while training lasts


def run_study(project: Path, name: str, small: bool) -> int:
    """Run a study in its workspace and bring its reports to studies/NAME/reports; the exit code of the run.

    As published, it first says what memory and disk it needs, and stops where that is clearly too little.

    Raises InputError where the study's settings are wrong or it is running already.
    """
    folder, study = project / WORKSPACES / (f"{name}-small" if small else name), project / STUDIES / name
    lock = take(folder.with_name(f"{folder.name}.lock"))
    if lock is None:
        raise InputError(f"{STUDIES}/{name} is already running")
    with lock:
        fill_workspace(project, study, folder, small)
        code = 0 if small else subprocess.run([*RETRACE, "needs"], cwd=folder, check=False).returncode
        code = code or _repro(folder)
        if code == 0:
            _bring_back(folder / REPORTS, study / REPORTS)
    return code


def fill_workspace(project: Path, study: Path, folder: Path, small: bool) -> None:
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
    write_presets(presets, folder)
    if (project / OWN_DATA).is_dir() and not (folder / OWN_DATA).is_symlink():
        (folder / OWN_DATA).symlink_to((project / OWN_DATA).resolve(), target_is_directory=True)
    _configure_dvc(project, folder)


def _project_files(project: Path) -> Iterator[Path]:
    """The project's own files, as they lie in the working tree."""
    listing = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
    done = subprocess.run(listing, cwd=project, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InputError(f"{project}: git ls-files: {done.stderr.strip()}")
    for name in filter(None, done.stdout.split("\0")):
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
    handler = signal.signal(signal.SIGINT, lambda *_: None)  # DVC and the stage get it too, and end in their own way
    try:
        return subprocess.Popen([*DVC, "repro", f"{STAGES}:compare"], cwd=folder).wait()
    finally:
        signal.signal(signal.SIGINT, handler)


def _bring_back(source: Path, target: Path) -> None:
    """Copy the reports, the study's page beside them."""
    with atomic_folder(target) as folder:
        shutil.copytree(source, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(LIVE, "study"))
        shutil.copytree(source / "study", folder, dirs_exist_ok=True)
