"""How long `data: hub` takes compared with `data: files` on the same data, once it has been fetched.

The project's data/params.yaml names the files. A hub on loopback serves the same data, as parquet; both stages are run
once and then in turn, seven times.

Last result: 21.1 s against 18.9 s, WikiText-2, SST-2 and SQuAD v1.1 (hub.json).

    python benchmarks/hub.py --project FOLDER
"""

import shutil
import statistics
import tempfile
from functools import partial
from pathlib import Path

from beside import plain_parser, seconds_in_turn, write_result

from retrace.datasets.source import Source
from tests.hub import LocalHub
from tests.hub.content.datasets import GLUE, SQUAD, WIKITEXT, datasets_of
from tests.toy import Project, copy_project

ROUNDS = 7
PARTS = {"text": WIKITEXT, "sst2": GLUE, "squad": SQUAD}


def fetch(project: Project, source: str) -> None:
    """Run the stage of a data source."""
    project.set("data", source)
    project.stage(f"sources.{source}")


def prepared(project: Path, hub: LocalHub, folder: Path) -> Project:
    """A copy of the project in which both data sources read the same texts: its own files, and those on the hub."""
    copy = copy_project(folder / "project").with_variables(**hub.environment(folder / "home"))
    copy.set_all({f"files.{name}": value for name, value in Project(project).params()["files"].items()})
    shutil.copytree(project / "data/own", copy.folder / "data/own", dirs_exist_ok=True)
    fetch(copy, "files")
    source = Source.within(copy.folder / "data")
    pins = {name: hub.add("dataset", name, splits) for name, splits in datasets_of(source).items()}
    copy.set_all({f"hub.{part}.repository": f"{name}@{pins[name]}" for part, name in PARTS.items()})
    return copy


def main() -> None:
    parser = plain_parser(__doc__)
    parser.add_argument("--project", type=Path, required=True)
    project = parser.parse_args().project.resolve()
    with tempfile.TemporaryDirectory() as made, LocalHub(Path(made)) as hub:
        copy = prepared(project, hub, Path(made))
        sides = {source: partial(fetch, copy, source) for source in ("files", "hub")}
        ((first,),) = seconds_in_turn({"hub": sides["hub"]}, 1).values()
        seconds = seconds_in_turn(sides, ROUNDS)
    medians = {source: round(statistics.median(times), 2) for source, times in seconds.items()}
    result = {
        "seconds_of_the_first_fetch": round(first, 2),
        "median_seconds": medians,
        "range": {source: [round(min(times), 2), round(max(times), 2)] for source, times in seconds.items()},
        "added_seconds": round(medians["hub"] - medians["files"], 2),
    }
    write_result("hub", result)


if __name__ == "__main__":
    main()
