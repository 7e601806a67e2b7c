"""`retrace study`: the published studies, their figures next to Retrace's, and the records of fixed budgets."""

import filecmp
import io
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from ruamel.yaml import YAML

from retrace.cli.dvc_files import dvc_config
from retrace.cli.main import print_table
from retrace.cli.repro import DVC, prefer_this_python, run_dvc
from retrace.cli.settings import write_presets
from retrace.core.errors import InputError, printable
from retrace.core.files import atomic_folder, write_json, write_text
from retrace.core.guard import CODE, lock
from retrace.core.paths import OWN, WORKSPACES, require_checkout
from retrace.core.records import WRITTEN as WRITTEN_BY_RUNS
from retrace.core.records import git, try_git, uncommitted
from retrace.core.settings import LARGEST_SEED, Seed, build, build_file, read_params, read_yaml
from retrace.study.published import MEANINGS, PUBLISHED, RESULT, STUDIES, PublishedStudy, StudyResult

RETRACE = (sys.executable, "-m", "retrace.cli.main")
REPORTS = Path("reports")
NOT_COPIED = ("reports/", "studies/", "data/own/")  # made by runs; other studies'; linked
PIPELINE, IGNORED, STAGES = Path("dvc.yaml"), Path(".dvcignore"), Path("studies/dvc.yaml")
# Dependencies that a study's own pipeline may lack; the comparison then depends on the data that its `evaluate` lists.
OPTIONAL = (
    "data/text", "data/classification", "data/question_answering", "models/pretrained",
    "reports/perplexity-details.json",
)  # fmt: skip
LIVE = "live"  # plots that are drawn during training

Name = Annotated[str, typer.Argument(metavar="NAME", help="a folder of studies/")]
FromSeed = typer.Option(min=0, max=LARGEST_SEED, help="seed of pretraining and all else, in a workspace of its own")


def list_studies() -> None:
    """List the studies (folders of studies/) and which of them were run."""
    rows = []
    for folder in _folders().values():
        study = build_file(PublishedStudy, folder / PUBLISHED)
        figures = sum(1 for table in study.tables for cell in table.cells() if cell.published)
        rows.append((folder.name, len(study.tables), figures, _how_run(folder / RESULT), study.title))
    print_table(("study", "tables", "figures", "run", "title"), rows)


def _how_run(result: Path) -> str:
    """How a study was run, by its figures, which may be damaged or of another version of Retrace."""
    if not result.is_file():
        return "not run"
    try:
        return "small" if StudyResult.read(result).small else "as published"
    except InputError:
        return "cannot be read"


def compare(name: Name) -> None:
    """Show published figures next to Retrace's, one per line."""
    folder = _folder(name)
    if not (folder / RESULT).is_file():
        raise InputError(f"{STUDIES}/{name} has not been run; use: retrace study run {name}")
    result = StudyResult.read(folder / RESULT)
    print(printable(result.title))
    print(result.comparable)
    rows = [(*place, cell.published_text, cell.reproduced_text, cell.verdict) for *place, cell in result.cells()]
    print_table(("table", "row", "column", "published", "Retrace", "verdict"), rows)
    counts = Counter(cell.verdict for *_, cell in result.cells())
    print(*(f"{name}: {meaning}" for name, meaning in MEANINGS.items() if counts[name]), sep="\n")
    print(f"{counts.total()} figures: " + ", ".join(f"{counts[name]} {name}" for name in MEANINGS if counts[name]))


def run(
    name: Name,
    small: Annotated[bool, typer.Option("--small", help="tiny models and little data: minutes on two cores")] = False,
    seed: Annotated[int | None, FromSeed] = None,
) -> None:
    """Run a study, as published or small, and compare its figures; it runs in a workspace, so params.yaml is kept.

    With a seed, pretraining and fine-tuning use only that seed, and the reports stay in the workspace. A run that is
    not small first prints the memory and disk that it needs, and stops if there is clearly too little.
    """
    from retrace.study.records import ORIGIN, RunOrigin  # here, as it takes seconds to import

    prefer_this_python()
    study = _folder(name)
    build_file(PublishedStudy, study / PUBLISHED)  # so that a mistake in it is reported now and not after the training
    dvc_config()  # for its errors, as the workspace takes it over
    project, folder = study.parents[1], workspace(study, small, seed)
    with lock(folder.name, folder.parent):
        commit = try_git("rev-parse", "HEAD", folder=project)
        changed = uncommitted(".", *WRITTEN_BY_RUNS, ":!data/own", folder=project)  # except what runs and users write
        fill_workspace(study, folder, small, seed)
        (folder / ORIGIN).unlink(missing_ok=True)  # from now on, results may be of another commit than the last run's
        code = 0 if small else subprocess.run([*RETRACE, "needs"], cwd=folder, check=False).returncode
        if code := code or run_dvc([*DVC, f"{STAGES}:compare"], folder):
            raise typer.Exit(code)
        of_run = RunOrigin(commit=commit, changed=changed, seed=build(Seed, read_params(folder), "seed"))
        write_json(folder / ORIGIN, of_run.to_json())
        if seed is not None:
            print(folder / "reports/study/report.html")
            return
        with atomic_folder(study / REPORTS) as aside:
            ignored = shutil.ignore_patterns(LIVE, "study")
            shutil.copytree(folder / REPORTS, aside, dirs_exist_ok=True, ignore=ignored)
            shutil.copytree(folder / REPORTS / "study", aside, dirs_exist_ok=True)
    print(f"{study / 'reports/report.html'}; all figures: retrace study compare {name}")


def record(
    name: Name,
    seeds: Annotated[list[int], typer.Argument(metavar="SEEDS", help="three or more, each run with --seed")],
    change: Annotated[str, typer.Option(metavar="TEXT", help="what changed since the previous run")],
) -> None:
    """Add finished runs to studies/NAME/records.yaml, with their figures, commit, date and machine.

    Each run must have started from a clean commit. `retrace records > docs/records.md` then updates the page.
    """
    from retrace.study.records import BUDGETS, RECORDS, add_entry, read_entry

    folder = _folder(name)
    if name not in BUDGETS:
        raise InputError(f"NAME: {name!r} has no budget; expected one of {', '.join(BUDGETS)}")
    if not change.strip():
        raise InputError(f"--change: {change!r} is not allowed; expected what changed since the previous run")
    runs = {f"retrace study run {name} --seed {seed}": workspace(folder, False, seed) for seed in seeds}
    add_entry(folder / RECORDS, read_entry(name, change, runs))
    print(f"added to {folder / RECORDS}; the page: retrace records > docs/records.md")


def records() -> None:
    """Print what was reached with fixed budgets, run by run, as Markdown: docs/records.md.

    `retrace study record` adds finished runs.
    """
    from retrace.study.records import records_page

    require_checkout(STUDIES)
    print(records_page(Path()), end="")


def _folder(name: str) -> Path:
    folders = _folders()
    if name not in folders:
        raise InputError(f"NAME: {name!r} is not a study; expected one of {', '.join(folders)}")
    return folders[name]


def _folders() -> dict[str, Path]:
    """The studies, by name."""
    require_checkout(STUDIES)
    return {path.parent.name: path.parent for path in sorted(Path.cwd().glob(f"{STUDIES}/*/{PUBLISHED}"))}


def workspace(study: Path, small: bool, seed: int | None) -> Path:
    """The folder of a study's workspace: a copy of the project with the study's settings, in which DVC runs it.

    It is kept, so that a rerun finds its results and a killed run resumes. It shares DVC's cache with the project, and
    reads the user's data from the project's data/own.
    """
    ending = ("-small" if small else "") + ("" if seed is None else f"-seed-{seed}")
    return study.parents[1] / WORKSPACES / f"{study.name}{ending}"


def fill_workspace(study: Path, folder: Path, small: bool, seed: int | None = None) -> None:
    """Create or update a workspace; unchanged files are left alone."""
    project = study.parents[1]
    presets = [study / "params.yaml", *([study / "small.yaml"] if small else [])]
    for preset in presets:
        if not preset.is_file():
            lacks = "small run" if preset.stem == "small" else "settings"
            raise InputError(f"{preset.relative_to(project)}: no such file; the study has no {lacks}")
    files = list(_project_files(project))
    code = {path.relative_to(folder) for code_folder in CODE for path in (folder / code_folder).rglob("*")
            if path.is_file() and path.suffix != ".pyc"}  # fmt: skip
    for gone in code.difference(files):
        (folder / gone).unlink()
    for path in files:
        _copy(project / path, folder / path)
    _copy(study / PUBLISHED, folder / STUDIES / study.name / PUBLISHED)
    _write_stages(project, study, folder)
    write_text(folder / "study.yaml", f"study: {study.name}\nrun: {'small' if small else 'published'}\n")
    if seed is not None:
        presets.append(folder / "seed.yaml")
        write_text(presets[-1], f"seed: {seed}\nfinetune: {{seeds: [{seed}]}}\n")
    write_presets(presets, folder)
    _link_own((project / OWN).resolve(), folder / OWN)
    _configure_dvc(project, folder)


def _link_own(own: Path, link: Path) -> None:
    """Link to the user's data, also where a link leads elsewhere, as in a checkout that was moved or copied."""
    if link.is_symlink() and link.readlink() != own:
        link.unlink()
    if own.is_dir() and not link.is_symlink():
        link.symlink_to(own, target_is_directory=True)


def _project_files(project: Path) -> Iterator[Path]:
    """The project's own files, as they are in the working tree."""
    for name in filter(None, git("ls-files", "-co", "--exclude-standard", "-z", folder=project).split("\0")):
        if not name.startswith(NOT_COPIED) and not name.endswith("dvc.lock") and (project / name).is_file():
            yield Path(name)


def _copy(source: Path, target: Path) -> None:
    if not target.is_file() or not filecmp.cmp(source, target, shallow=False):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)


def _write_stages(project: Path, study: Path, folder: Path) -> None:
    """Write the pipeline, the study's own or the project's, and the stage that compares figures."""
    own = study / PIPELINE
    if own.is_file():
        _copy(own, folder / PIPELINE)
        write_text(folder / STAGES, _comparing(own, project / STAGES))
    else:
        _copy(project / STAGES, folder / STAGES)
    write_text(folder / IGNORED, (project / IGNORED).read_text(encoding="utf-8") + f"!/{STUDIES}/\n")


def _comparing(own: Path, stages: Path) -> str:
    """The file of the stage that compares figures, for a study with a pipeline of its own.

    Raises InputError if that pipeline is not YAML.
    """
    yaml, written = YAML(), io.StringIO()
    read = build(dict[str, dict[str, Any]], {"stages": {}} | read_yaml(own), "stages", own)
    of_own = {name: stage.get("do", stage).get("deps", []) for name, stage in read.items()}
    absent = {*OPTIONAL}.difference(*of_own.values())
    found = yaml.load(stages)
    deps = found["stages"]["compare"]["deps"]
    scored = [dep for dep in of_own.get("evaluate", []) if dep.startswith("data/") and dep not in deps]
    deps[:] = scored + [dep for dep in deps if dep not in absent]
    yaml.dump(found, written)
    return written.getvalue()


def _configure_dvc(project: Path, folder: Path) -> None:
    """Configure DVC without git, with the project's cache and its configuration, which may hold passwords."""
    from dvc.config import Config, merge  # here, as DVC takes a second to import

    config = Config(str(project / ".dvc"), validate=False)  # as written, but with absolute paths
    config["core"]["no_scm"] = "true"
    config["cache"].setdefault("dir", str(project / ".dvc/cache"))
    config["plots"]["html_template"] = str(project / ".dvc/plots/page.html")  # in the project's it is a relative path
    own = folder / ".dvc"
    own.mkdir(exist_ok=True)
    own.chmod(0o700)
    (own / "config.local").unlink(missing_ok=True)  # it may be half-written
    with Config(str(own)).edit("local") as local:
        merge(local, config)


SUBCOMMANDS = {"list": list_studies, "run": run, "compare": compare, "record": record}
