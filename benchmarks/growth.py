"""The memory of tokenising and pretraining as the text grows; it must stay the same.

The project's text, repeated up to a given number of megabytes, goes through both stages, each in its own process;
pretraining makes a few updates. The peak memory of each is recorded.

    python benchmarks/growth.py --project FOLDER   # a clone, after `dvc repro pretrain`
"""

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from harness import ROOT, plain_parser, write_result

from retrace.core.files import SUMS
from retrace.core.paths import TEXT
from retrace.datasets.text import text_path
from tests.toy import Project

COPIED = ("stages", "retrace", "launch", "params.yaml", "data/params.yaml")


def main() -> None:
    parser = plain_parser(__doc__)
    parser.add_argument("--project", type=Path, default=ROOT)
    parser.add_argument("--megabytes", type=int, nargs="+", default=[10, 300])
    arguments = parser.parse_args()
    result = {str(size): grown(arguments.project.resolve(), size) for size in arguments.megabytes}
    write_result("growth", result)


def grown(source: Path, megabytes: int) -> dict[str, dict[str, float]]:
    """Memory and time of each stage on this much text."""
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder))
        for name in COPIED:
            path = source / name
            (project.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if path.is_dir() else shutil.copyfile)(path, project.folder / name)
        for name in ("text", "classification", "question_answering", "model"):
            shutil.copytree(source / "data" / name, project.folder / "data" / name)
        (project.folder / TEXT / SUMS).unlink()  # of the text as it was
        project.set("pretrain.max_tokens", 100_000)
        text = project.folder / text_path(TEXT, "train")
        piece = text.read_bytes()
        with text.open("wb") as file:
            for _ in range(-(-megabytes * 10**6 // len(piece))):
                file.write(piece)
        return {stage: measured(project, stage) for stage in ("tokenize", "pretrain")}


def measured(project: Project, stage: str) -> dict[str, float]:
    """The peak memory of a stage, and its seconds."""
    began = time.monotonic()
    os.chdir(project.folder)
    process = os.spawnve(
        os.P_NOWAIT, sys.executable, [sys.executable, "-m", f"stages.{stage}"],
        {**os.environ, "PYTHONPATH": str(project.folder)},
    )  # fmt: skip
    _, status, used = os.wait4(process, 0)
    os.chdir(ROOT)
    if status:
        raise SystemExit(f"{stage} failed")
    return {"mebibytes": round(used.ru_maxrss / 1024), "seconds": round(time.monotonic() - began, 1)}


if __name__ == "__main__":
    main()
