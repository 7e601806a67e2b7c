"""`retrace study`: the published studies, and their figures beside those that Retrace got.

`retrace study list` has a line for each folder of studies/; `retrace study compare NAME` one for each figure.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from retrace.cli.terminal import print_table
from retrace.core.errors import InputError
from retrace.core.files import read_object
from retrace.study.page import AS_PUBLISHED, SMALL, published_text, reproduced_text
from retrace.study.page import PUBLISHED as AS_PUBLISHED_PROFILE
from retrace.study.published import PUBLISHED, read_published
from retrace.study.verdicts import VERDICTS, cells_of

STUDIES, REPORT = "studies", Path("reports/study.json")


def list_studies() -> None:
    """List the studies, and which of them were run."""
    rows = []
    for folder in _folders():
        study = read_published(folder / PUBLISHED)
        profile = read_object(folder / REPORT)["profile"] if (folder / REPORT).is_file() else "not run"
        figures = sum(1 for table in study.tables for cell in table.cells() if cell.published)
        rows.append((folder.name, len(study.tables), figures, profile, study.title))
    print_table(("study", "tables", "figures", "run with profile", "title"), rows)


def compare(
    name: Annotated[str, typer.Argument(metavar="NAME", help="a folder of studies/")],
    as_json: Annotated[bool, typer.Option("--json", help="as reports/study.json of the study has it")] = False,
) -> None:
    """Show published figures beside Retrace's."""
    folders = {folder.name: folder for folder in _folders()}
    if name not in folders:
        raise InputError(f"NAME: {name!r} is no study; expected one of {', '.join(folders)}")
    if not (folders[name] / REPORT).is_file():
        raise InputError(f"{STUDIES}/{name} was not run: dvc repro {STUDIES}/{name}/dvc.yaml, in the project's root")
    report = read_object(folders[name] / REPORT)
    if as_json:
        print(json.dumps(report, indent=2, ensure_ascii=False))
        return
    profile = report["profile"]
    print(report["title"])
    print(AS_PUBLISHED if profile == AS_PUBLISHED_PROFILE else SMALL.format(profile=profile))
    print_table(("table", "row", "column", "published", "Retrace", "verdict"), _rows(report))
    counts = Counter(cell["verdict"] for *_, cell in cells_of(report))
    print(*(f"{name}: {meaning}" for name, meaning in VERDICTS.items() if counts[name]), sep="\n")
    print(f"{counts.total()} figures: " + ", ".join(f"{counts[name]} {name}" for name in VERDICTS if counts[name]))


def _rows(report: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for table, row, column, cell in cells_of(report):
        yield table, row, column, published_text(cell), reproduced_text(cell), cell["verdict"]


def _folders() -> list[Path]:
    """The studies of the project that the working directory is in."""
    here = Path.cwd()
    for above in (here, *here.parents):
        found = sorted(path.parent for path in (above / STUDIES).glob(f"*/{PUBLISHED}"))
        if found:
            return found
    raise InputError(f"{here}: neither here nor above is a folder {STUDIES} with a study in it")


SUBCOMMANDS = {"list": list_studies, "compare": compare}
