"""Does the number of processes change the loss? The same pretraining in one process and in two, over 100 updates.

Last result: no epoch's loss differed by more than 0.00000016.

python benchmarks/processes.py
"""

import csv
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from own import TORCHRUN  # noqa: E402

from tests.toy import Project, copy_project  # noqa: E402

LAUNCHERS = ([], [*TORCHRUN, "2"])
UPDATES = 100


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        project = copy_project(Path(folder) / "project")
        recipe = project.params()["pretrain"]
        project.set("precision", "fp32")
        project.set("pretrain.epochs", 99)
        project.set("pretrain.max_tokens", UPDATES * recipe["batch_size"] * recipe["block_size"])
        project.stage("sources.sample")
        project.stage("sources.model")
        project.stage("tokenize")
        one, two = (curve(project, launcher) for launcher in LAUNCHERS)
    furthest = max(abs(float(a) - float(b)) for a, b in zip(one, two, strict=True))
    print(json.dumps({"losses": len(one), "furthest_apart": furthest}))


def curve(project: Project, launcher: list[str]) -> list[str]:
    """Training and validation losses of every epoch."""
    environment = {**os.environ, "PYTHONPATH": str(project.folder), "ACCELERATE_USE_CPU": "1"}
    command = [sys.executable, *launcher, "-m", "stages.pretrain"]
    subprocess.run(command, cwd=project.folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    with (project.folder / "reports/curves/pretrain.csv").open() as file:
        rows = list(csv.DictReader(file))
    return [row[name] for row in rows for name in ("training_loss", "validation_loss") if row[name]]


if __name__ == "__main__":
    main()
