import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.toy import ROOT


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for folder in ("stages", "retrace"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def _listings(folder: Path) -> dict[str, str]:
    subprocess.run([sys.executable, "-m", "stages.sources.code"], cwd=folder, env={"PYTHONPATH": "."}, check=True)
    return {path.stem: path.read_text() for path in (folder / "studies/code").iterdir()}


def test_editing_a_metric_changes_what_scores_and_nothing_that_trains(copy: Path) -> None:
    before = _listings(copy)
    path = copy / "retrace/evaluation/confusion.py"
    path.write_text(path.read_text() + "# edited\n")
    after = _listings(copy)
    assert before.keys() == after.keys()
    assert {name for name in before if before[name] != after[name]} == {"evaluate"}


def test_a_listing_is_the_import_closure(copy: Path) -> None:
    lines = _listings(copy)["tokenize"].splitlines()
    names = [line.split("  ")[1] for line in lines]
    assert "stages/tokenize.py" in names
    assert "retrace/core/errors.py" in names  # imported by what it imports
    assert not any(name.startswith(("retrace/models", "retrace/evaluation")) for name in names)
