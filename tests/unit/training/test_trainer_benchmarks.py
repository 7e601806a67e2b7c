"""What the benchmarks against transformers' `Trainer` share."""

import sys
from importlib import import_module
from pathlib import Path

from tests.toy import ROOT


def test_a_side_is_measured_by_this_checkouts_program_in_the_projects_folder(tmp_path: Path, monkeypatch) -> None:
    """Which may be a clone with benchmarks of another version."""
    for name in ("this", "clone"):
        program = tmp_path / name / "benchmarks/one.py"
        program.parent.mkdir(parents=True)
        program.write_text(f"from pathlib import Path\nprint('[\"{name}\", \"' + Path.cwd().name + '\"]')\n")
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    beside = import_module("beside")
    monkeypatch.setattr(beside, "ROOT", tmp_path / "this")
    monkeypatch.setattr(sys, "argv", ["benchmarks/one.py", "--seeds", "1"])
    monkeypatch.chdir(tmp_path / "clone")
    assert beside.in_process("one", seed=1) == ["this", "clone"]
