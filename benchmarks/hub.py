"""How long `data: hub` takes beside `data: files` on the same data, where it was fetched before.

The project's params.yaml names the files. A hub on loopback serves the same data, as parquet; both stages are run once
and then in turn, seven times.

Last result: 1.78 s beside 0.93 s, WikiText-2, SST-2 and SQuAD v1.1 (hub.json).

    python benchmarks/hub.py --project FOLDER
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from ruamel.yaml import YAML  # noqa: E402

from tests.hub import LocalHub  # noqa: E402
from tests.hub.content.datasets import GLUE, SQUAD, WIKITEXT, datasets_of  # noqa: E402

ROUNDS = 7
PARTS = {"text": WIKITEXT, "sst2": GLUE, "squad": SQUAD}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--project", type=Path, required=True)
    project = parser.parse_args().project.resolve()
    with tempfile.TemporaryDirectory() as made, LocalHub(Path(made)) as hub:
        folder = Path(made) / "project"
        shutil.copytree(ROOT / "stages", folder / "stages")
        environment = {**hub.environment(Path(made) / "home"), "PYTHONPATH": str(folder)}
        params = YAML().load(ROOT / "params.yaml")
        params["files"] = YAML().load(project / "params.yaml")["files"]
        for part in PARTS:
            params["files"][part] = str(project / params["files"][part])
        YAML().dump(params, folder / "params.yaml")
        run("files", folder, environment)
        for part, files in datasets_of(folder / "data/files").items():
            commit = hub.add("dataset", part, files)
            name = next(name for name, repository in PARTS.items() if repository == part)
            params["hub"][name]["repository"] = f"{part}@{commit}"
        YAML().dump(params, folder / "params.yaml")
        first = run("hub", folder, environment)
        seconds: dict[str, list[float]] = {"files": [], "hub": []}
        for _ in range(ROUNDS):
            for source, times in seconds.items():
                times.append(run(source, folder, environment))
    medians = {source: round(statistics.median(times), 2) for source, times in seconds.items()}
    result = {
        "seconds_of_the_first_fetch": round(first, 2),
        "median_seconds": medians,
        "range": {source: [round(min(times), 2), round(max(times), 2)] for source, times in seconds.items()},
        "added_seconds": round(medians["hub"] - medians["files"], 2),
    }
    print(json.dumps(result, indent=2))


def run(source: str, folder: Path, environment: dict[str, str]) -> float:
    """Seconds of a source's stage."""
    start = time.perf_counter()
    command = [sys.executable, "-m", f"stages.sources.{source}"]
    subprocess.run(command, cwd=folder, env={**os.environ, **environment}, capture_output=True, check=True)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
