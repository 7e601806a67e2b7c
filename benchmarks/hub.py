"""How long `data: hub` takes beside `data: files` on the same data, where it was fetched before.

The project's data/params.yaml names the files. A hub on loopback serves the same data, as parquet; both stages are run
once and then in turn, seven times.

Last result: 1.78 s beside 0.93 s, WikiText-2, SST-2 and SQuAD v1.1 (hub.json).

    python benchmarks/hub.py --project FOLDER
"""

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.hub import LocalHub  # noqa: E402
from tests.hub.content.datasets import GLUE, SQUAD, WIKITEXT, datasets_of  # noqa: E402
from tests.toy import Project, copy_project  # noqa: E402

ROUNDS = 7
PARTS = {"text": WIKITEXT, "sst2": GLUE, "squad": SQUAD}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--project", type=Path, required=True)
    project = parser.parse_args().project.resolve()
    files = Project(project).params()["files"]
    with tempfile.TemporaryDirectory() as made, LocalHub(Path(made)) as hub:
        copy = copy_project(Path(made) / "project").with_variables(**hub.environment(Path(made) / "home"))
        copy.set_all({f"files.{name}": value for name, value in files.items()})
        shutil.copytree(project / "data/own", copy.folder / "data/own", dirs_exist_ok=True)
        run("files", copy)
        pins = {name: hub.add("dataset", name, of) for name, of in datasets_of(copy.folder / "data/files").items()}
        copy.set_all({f"hub.{part}.repository": f"{name}@{pins[name]}" for part, name in PARTS.items()})
        first = run("hub", copy)
        seconds: dict[str, list[float]] = {"files": [], "hub": []}
        for _ in range(ROUNDS):
            for source, times in seconds.items():
                times.append(run(source, copy))
    medians = {source: round(statistics.median(times), 2) for source, times in seconds.items()}
    result = {
        "seconds_of_the_first_fetch": round(first, 2),
        "median_seconds": medians,
        "range": {source: [round(min(times), 2), round(max(times), 2)] for source, times in seconds.items()},
        "added_seconds": round(medians["hub"] - medians["files"], 2),
    }
    print(json.dumps(result, indent=2))


def run(source: str, project: Project) -> float:
    """Seconds of a source's stage."""
    start = time.perf_counter()
    project.stage(f"sources.{source}")
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
