"""`retrace study`: the published studies, their figures beside Retrace's, and the records of fixed budgets."""

import json
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from retrace.cli.terminal import print_table
from retrace.core.errors import InputError
from retrace.core.settings import LARGEST_SEED
from retrace.study.published import MEANINGS, PUBLISHED, RESULT, STUDIES, StudyResult, read_published

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
    from retrace.cli.workspace import run_study, workspace

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
    change: Annotated[str, typer.Option(metavar="TEXT", help="what it does otherwise than the run before")],
    seeds: Annotated[list[int], typer.Option(help="of runs that were made with --seed, in place of one run")] = [],  # noqa: B006
) -> None:
    """Add a finished run to studies/NAME/records.yaml: its own figures, commit, date and machine.

    It needs three seeds and a tree without changes when the run began. `retrace records > docs/records.md` then makes
    the page.
    """
    from retrace.cli.workspace import workspace
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


SUBCOMMANDS = {"list": list_studies, "run": run, "compare": compare, "record": record}
