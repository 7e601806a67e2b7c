import subprocess
import sys
from pathlib import Path

import pytest

from stages.harness.errors import InputError
from stages.harness.guard import guarded

HOLD = "from stages.harness.guard import guarded\nwith guarded('x', [], []): print('held', flush=True); input()"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("params.yaml").write_text("lr: 1\nother: 1\n")
    Path("in").mkdir()
    Path("in/a").write_text("a")


def test_passes_when_nothing_changed() -> None:
    with guarded("x", [Path("in")], ["lr"]):
        Path("params.yaml").write_text("lr: 1\nother: 2\n")


@pytest.mark.parametrize("change", ["in/a", "in/b"])
def test_notices_a_changed_or_new_input(change: str) -> None:
    with pytest.raises(InputError, match=f"{change} changed while x ran"), guarded("x", [Path("in")], []):
        Path(change).write_text("other")


def test_notices_a_removed_input() -> None:
    with pytest.raises(InputError, match="in/a changed"), guarded("x", [Path("in")], []):
        Path("in/a").unlink()


def test_notices_a_changed_param() -> None:
    with pytest.raises(InputError, match=r"params\.yaml: lr changed"), guarded("x", [], ["lr"]):
        Path("params.yaml").write_text("lr: 2\nother: 1\n")


def test_a_second_run_is_told_who_holds_the_lock(tmp_path: Path) -> None:
    root = str(Path(__file__).parents[3])
    with subprocess.Popen(
        [sys.executable, "-c", HOLD], cwd=tmp_path, env={"PYTHONPATH": root}, stdin=-1, stdout=-1, text=True
    ) as first:
        assert first.stdin is not None
        assert first.stdout is not None
        assert first.stdout.readline() == "held\n"
        with pytest.raises(InputError, match=f"x is already running here as process {first.pid}"), guarded("x", [], []):
            pass
        first.stdin.write("\n")
        first.stdin.close()
    with guarded("x", [], []):
        pass
