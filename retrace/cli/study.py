"""`retrace study`: the published studies, their figures beside Retrace's, and the records of fixed budgets."""

import filecmp
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path
from typing import Annotated, Any

import typer

from retrace.cli.main import print_table
from retrace.cli.settings import write_presets
from retrace.core.errors import InputError
from retrace.core.files import atomic_folder, write_json, write_text
from retrace.core.guard import CODE, handled, take
from retrace.core.records import WRITTEN as WRITTEN_BY_RUNS
from retrace.core.records import git
from retrace.core.settings import DATA_PARAMS, LARGEST_SEED, PARAMS, Seed, build, read_params
from retrace.study.published import MEANINGS, PUBLISHED, RESULT, STUDIES, StudyResult, read_published

DVC, RETRACE = (sys.executable, "-m", "dvc"), (sys.executable, "-m", "retrace.cli.main")
WORKSPACES = Path(".retrace/studies")
OWN_DATA, REPORTS = Path("data/own"), Path("reports")
NOT_COPIED = ("reports/", "studies/", "data/own/")  # made by runs; of other studies; linked
PIPELINE, IGNORED, STAGES = Path("dvc.yaml"), Path(".dvcignore"), Path("studies/dvc.yaml")
WRITTEN = (PARAMS, DATA_PARAMS, PIPELINE, IGNORED)  # as the study has them
# Not of every pipeline.
OPTIONAL = ("data/${data}", "data/model", "models/pretrained", "reports/perplexity-details.json")
LIVE = "live"  # reports that are drawn while training lasts

Name = Annotated[str, typer.Argument(metavar="NAME", help="a folder of studies/")]


def list_studies() -> None:
    """List the studies, the folders of studies/, and which of them were run."""
    rows = []
    for folder in _folders().values():
        study = read_published(folder / PUBLISHED)
        figures = sum(1 for table in study.tables for cell in table.cells() if cell.published)
        result = StudyResult.read(folder / RESULT) if (folder / RESULT).is_file() else None
        how = "not run" if result is None else "small" if result.small else "as published"
        rows.append((folder.name, len(study.tables), figures, how, study.title))
    print_table(("study", "tables", "figures", "run", "title"), rows)


def compare(
    name: Name, as_json: Annotated[bool, typer.Option("--json", help="print the study's reports/study.json")] = False
) -> None:
    """Show published figures beside Retrace's, a line for each."""
    folder = _folder(name)
    if not (folder / RESULT).is_file():
        raise InputError(f"{STUDIES}/{name} was not run: retrace study run {name}")
    result = StudyResult.read(folder / RESULT)
    if as_json:
        print(json.dumps(result.to_json(), indent=2, ensure_ascii=False))
        return
    print(result.title)
    print(result.comparable)
    print_table(
        ("table", "row", "column", "published", "Retrace", "verdict"),
        [(*place, cell.published_text, cell.reproduced_text, cell.verdict) for *place, cell in result.cells()],
    )
    counts = Counter(cell.verdict for *_, cell in result.cells())
    print(*(f"{name}: {meaning}" for name, meaning in MEANINGS.items() if counts[name]), sep="\n")
    print(f"{counts.total()} figures: " + ", ".join(f"{counts[name]} {name}" for name in MEANINGS if counts[name]))


def run(
    name: Name,
    small: Annotated[bool, typer.Option("--small", help="tiny models and little data: minutes on two cores")] = False,
    seed: Annotated[
        int | None, typer.Option(min=0, max=LARGEST_SEED, help="of pretraining and all else, in a workspace of its own")
    ] = None,
) -> None:
    """Run a study as published, or small, in a workspace, which leaves params.yaml as it is; compare its figures."""
    folder = _folder(name)
    code = run_study(folder.parents[1], name, small, seed)
    if code:
        raise typer.Exit(code)
    if seed is None:
        print(f"{folder / 'reports/report.html'}; all figures: retrace study compare {name}")
    else:
        print(workspace(folder.parents[1], name, small, seed) / "reports/study/report.html")


def record(
    name: Name,
    change: Annotated[str, typer.Option(metavar="TEXT", help="what changed since the previous run")],
    seeds: Annotated[list[int], typer.Option(help="of runs that were made with --seed, in place of one run")] = [],  # noqa: B006
) -> None:
    """Add a finished run to studies/NAME/records.yaml: its own figures, commit, date and machine.

    It needs three seeds and a tree without changes when the run began. `retrace records > docs/records.md` then makes
    the page.
    """
    from retrace.study.records import BUDGETS, FIGURES, RECORDS, add_entry, read_entry, read_records, standings

    folder = _folder(name)
    if name not in BUDGETS:
        raise InputError(f"NAME: {name!r} has no budget; expected one of {', '.join(BUDGETS)}")
    command = f"retrace study run {name}"
    runs = {f"{command} --seed {seed}": workspace(folder.parents[1], name, False, seed) for seed in seeds}
    entry = read_entry(name, change, runs or {command: folder})
    add_entry(folder / RECORDS, entry)
    stood = standings(read_records(folder / RECORDS))[-1]
    rows = [
        (data, entry.text(figure), entry.seeds(figure), stood[figure].said) for figure, (data, *_) in FIGURES.items()
    ]
    print_table(("figure", "mean", "by seed", "which is"), rows)
    print(f"added to {folder / RECORDS}; the page: retrace records > docs/records.md")


def records() -> None:
    """Print what fixed budgets reached, run by run, as Markdown, which is docs/records.md.

    `retrace study record` adds a finished run.
    """
    from retrace.study.records import records_page

    print(records_page(next(iter(_folders().values())).parents[1]), end="")


def _folder(name: str) -> Path:
    folders = _folders()
    if name not in folders:
        raise InputError(f"NAME: {name!r} is no study; expected one of {', '.join(folders)}")
    return folders[name]


def _folders() -> dict[str, Path]:
    """The studies of the project that the working directory is in, by name."""
    here = Path.cwd()
    for above in (here, *here.parents):
        found = sorted(path.parent for path in (above / STUDIES).glob(f"*/{PUBLISHED}"))
        if found:
            return {folder.name: folder for folder in found}
    raise InputError(f"{here}: neither here nor above is a folder {STUDIES} with a study in it")


def workspace(project: Path, name: str, small: bool, seed: int | None = None) -> Path:
    """The folder of a study's workspace: a copy of the project with the study's settings, in which DVC runs it.

    It stays: a rerun finds its results there, and a run that was killed goes on. It shares DVC's cache with the
    project, and reads the user's data from the project's data/own.
    """
    ending = ("-small" if small else "") + ("" if seed is None else f"-seed-{seed}")
    return project / WORKSPACES / f"{name}{ending}"


def run_study(project: Path, name: str, small: bool, seed: int | None = None) -> int:
    """Run a study in its workspace and bring its reports to studies/NAME/reports; the exit code of the run.

    With a seed, pretraining and fine-tuning are from that one alone, and the reports stay in the workspace. As
    published, it first says what memory and disk it needs, and stops where that is clearly too little.

    Raises InputError where the study's settings are wrong or it is running already.
    """
    from retrace.study.records import ORIGIN, RunOrigin  # here, as lists of studies need none of what it imports

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
    """DVC without git, with the project's configuration, which may hold passwords, and cache."""
    from dvc.config import Config  # here, as DVC takes a second to import

    config = ConfigParser(interpolation=None)
    config.read([project / ".dvc/config", project / ".dvc/config.local"], encoding="utf-8")
    loaded = Config(str(project / ".dvc"))  # its paths are absolute
    for section in config.sections():
        if (name := section.strip("'")).startswith('remote "'):
            config[section]["url"] = str(loaded["remote"][name.split('"')[1]]["url"])
    cache = loaded["cache"].get("dir", project / ".dvc/cache")
    page = str(project / ".dvc/plots/page.html")  # in the project's configuration it is relative to its own folder
    config.read_dict({"core": {"no_scm": "true"}, "cache": {"dir": str(cache)}, "plots": {"html_template": page}})
    text = io.StringIO()
    config.write(text)
    mask = os.umask(0o077)
    try:
        _write(folder / ".dvc/config.local", text.getvalue())
    finally:
        os.umask(mask)


def _repro(folder: Path) -> int:
    """Run the pipeline up to the comparison, its output shown as it comes."""
    with handled(lambda *_: None, [signal.SIGINT]):  # DVC and the stage get it too, and end in their own way
        return subprocess.run([*DVC, "repro", f"{STAGES}:compare"], cwd=folder, check=False).returncode


def _bring_back(source: Path, target: Path) -> None:
    """Copy the reports, the study's page beside them."""
    with atomic_folder(target) as folder:
        shutil.copytree(source, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(LIVE, "study"))
        shutil.copytree(source / "study", folder, dirs_exist_ok=True)


SUBCOMMANDS = {"list": list_studies, "run": run, "compare": compare, "record": record}
