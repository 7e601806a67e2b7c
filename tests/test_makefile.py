"""What `make` leaves of a step that fails, and of a project that it cleans."""

import os
import shutil
import subprocess
from pathlib import Path

from retrace.core.files import write_text
from tests.commands import write_program
from tests.toy import ROOT, copy_as_it_is

# Like Debian's without python3-venv if `FAILS` is 1: `-m venv` makes a Python that has no pip, and fails.
PYTHON = """
case "$*" in *venv*) mkdir -p .venv/bin && ln -s "$0" .venv/bin/python && exit "$FAILS" ;; esac
"""
# Like the demo of the hub when one of its steps fails: it prints its folder, which is not empty.
DEMO = """
mkdir "$3/project" && echo "$3" && exit 3
"""
KEPT = (
    "data/own/text/train.txt", ".dvc/cache/files/md5/00/1", "dvc.lock", "reports/metrics.json",
    "reports/perplexity.json",
)  # fmt: skip
MADE = (
    "data/text/card.json", "data/model/config.json", "data/classification/sst2/card.json",
    "data/question_answering/squad/card.json", "data/checkpoints/tiny/config.json", "models/tokenizer/tokenizer.json",
    "predictions/sst2/full/1/losses.json", "reports/report.html", "reports/runs/pretrain.json",
    "reports/live/pretrain/metrics.json", "dvc_plots/index.html", ".retrace/states/a/1/progress.json",
    ".venv/bin/python",
)  # fmt: skip


def test_an_environment_that_is_half_made_is_made_again(here: Path) -> None:
    shutil.copy(ROOT / "Makefile", here)
    python = write_program(here / "python", PYTHON)
    for fails in (True, False):
        variables = {"PATH": os.environ["PATH"], "FAILS": str(int(fails))}
        command = ["make", ".venv/bin/python", f"PYTHON={python}"]
        done = subprocess.run(command, env=variables, capture_output=True, check=False)
        assert (done.returncode > 0, Path(".venv/bin/python").exists()) == (fails, not fails), done


def test_a_demo_that_fails_fails_make_and_its_folder_is_removed(here: Path) -> None:
    shutil.copy(ROOT / "Makefile", here)
    python = here / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    write_program(python, DEMO)
    variables = {"PATH": os.environ["PATH"], "TMPDIR": str(here)}
    command = ["make", "--silent", "--old-file=.venv/bin/.dev", "hub-demo"]  # without installing anything
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    (folder,) = done.stdout.splitlines()
    assert (done.returncode > 0, Path(folder).exists()) == (True, False), done


def test_cleaning_removes_what_was_made_and_leaves_ones_own_data_and_the_cache(tmp_path: Path) -> None:
    """And all files that belong to the project, the committed figures among them."""
    project = copy_as_it_is(tmp_path / "project")
    for name in KEPT:
        write_text(project.folder / name, "x")
    before = _files(project.folder)
    for name in MADE:
        write_text(project.folder / name, "x")
    project.run("make", "clean")
    assert _files(project.folder) == before


def _files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}
