import errno
import fcntl
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from retrace.core import guard
from retrace.core.errors import STOPPING, InputError, Interrupted
from retrace.core.files import SUMS, atomic_folder
from retrace.core.guard import LOCKS, Holder, guarded, running, take
from retrace.core.paths import WORKSPACES
from retrace.core.settings import read_params
from tests.commands import python
from tests.toy import ROOT

HOLD = "from retrace.core.guard import guarded\nwith guarded('x', [], {}): print('held', flush=True); input()"


@pytest.fixture(autouse=True)
def _inputs(here: Path) -> None:
    Path("params.yaml").write_text("lr: 1\nother: 1\n")
    Path("in").mkdir()
    Path("in/a").write_text("a")


def test_only_the_params_of_the_stage_count_from_when_it_read_them() -> None:
    with guarded("x", [Path("in")], {"lr": 1}):
        Path("params.yaml").write_text("lr: 1\nother: 2\n")
    with pytest.raises(InputError, match=r"params\.yaml: lr changed while x ran"), guarded("x", [], {"lr": 1}):
        Path("params.yaml").write_text("lr: 2\nother: 2\n")
    with pytest.raises(InputError, match=r"params\.yaml: lr changed while x started"), guarded("x", [], {"lr": 1}):
        pass


def _rewrite_at_the_same_time(path: Path, text: str) -> None:
    before = path.stat()
    path.write_text(text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize(
    ("change", "make"),
    [
        ("in/a", lambda: _rewrite_at_the_same_time(Path("in/a"), "b")),
        ("in/b", Path("in/b").touch),
        ("in/c", Path("in/c").unlink),
    ],
)
def test_notices_a_changed_a_new_and_a_removed_input_by_content(change: str, make: Callable[[], None]) -> None:
    Path("in/c").touch()
    with guarded("x", [Path("in")], {}):
        os.utime("in/a")
    with pytest.raises(InputError, match=f"{change} changed while x ran"), guarded("x", [Path("in")], {}):
        make()


def _run_stage(folder: Path, name: str, code: str) -> subprocess.CompletedProcess[str]:
    """Run a stage of this code, in a folder that has a copy of the project's beside it."""
    for package in ("stages", "retrace"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / f"stages/{name}.py").write_text(code)
    return subprocess.run(
        [sys.executable, "-m", f"stages.{name}"], cwd=folder, env={"PYTHONPATH": str(folder)}, check=False,
        capture_output=True, text=True, input="\n",
    )  # fmt: skip


@pytest.mark.parametrize("set_back", [0, 3600], ids=["now", "before the clock was set back"])
def test_code_that_changed_while_python_loaded_it_is_not_run(tmp_path: Path, set_back: int) -> None:
    """The main module is read first, and its imports take seconds."""
    clock = f"import time\nnow = time.time\ntime.time = lambda: now() - {set_back}\n"
    done = _run_stage(tmp_path, "late", f"{clock}from pathlib import Path\nPath(__file__).touch()\n{HOLD}")
    if set_back:
        assert (done.stdout, done.stderr) == ("held\n", "")
        return
    assert "InputError: stages/late.py changed while x started; run it again" in done.stderr
    assert done.stdout == ""


def test_a_second_run_is_told_who_holds_the_lock_while_it_is_held() -> None:
    path = Path(".retrace/locks/x.lock")
    with guarded("x", [], {}):
        assert take(path) is None
        assert running() == [Holder(path, os.getpid(), socket.gethostname())]
        said = f"^x is already running here as process {os.getpid()}"
        with pytest.raises(InputError, match=said), guarded("x", [], {}):
            pass
        path.write_text("")  # just locked, not yet named
        assert running() == [Holder(path, 0, "")]
        with pytest.raises(InputError, match=r"^x is already running here$"), guarded("x", [], {}):
            pass
    assert running() == []
    with guarded("x", [], {}):
        pass


def test_a_lock_that_is_a_link_to_a_file_leaves_the_file_alone(tmp_path: Path) -> None:
    (tmp_path / "theirs").write_text("precious")
    (tmp_path / "x.lock").symlink_to(tmp_path / "theirs")
    with pytest.raises(OSError, match=r"x\.lock"):
        take(tmp_path / "x.lock")
    assert (tmp_path / "theirs").read_text() == "precious"


def test_a_lock_that_the_file_system_refuses_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a full disk, for which a limit of the size of files stands in here, or where there are no file locks."""
    code = "import resource\nfrom pathlib import Path\nfrom retrace.core.errors import exit_cleanly\n"
    code += "from retrace.core.guard import take\nresource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
    done = python(f"{code}exit_cleanly(lambda: take(Path('x.lock')))", folder=Path.cwd())
    assert (done.returncode, done.stderr) == (2, "error: x.lock: File too large; nothing was left half-written\n")

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(OSError, match=r"Function not implemented: 'x\.lock'$"):
        take(Path("x.lock"))


def test_looking_at_a_lock_keeps_no_run_from_starting(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `retrace stop` does, again and again in a job."""
    Path(".retrace/locks").mkdir(parents=True)
    looks = iter([None, *[take] * 9])  # in the first attempt somebody looks
    monkeypatch.setattr(guard, "take", lambda path: (found := next(looks)) and found(path))
    Path(".retrace/locks/x.lock").touch()
    with guarded("x", [], {}):
        pass


@pytest.mark.parametrize("name", ["a", "b/c", SUMS])
def test_damage_is_noticed_although_time_and_size_are_the_same(name: str) -> None:
    with atomic_folder(Path("in/of"), summed=True) as folder:
        (folder / "a").write_text("a")
        (folder / "b").mkdir()
        (folder / "b/c").write_text("a")
    with guarded("x", [Path("in")], {}):
        pass
    path = Path("in/of") / name
    text, before = path.read_text(), path.stat()
    _rewrite_at_the_same_time(path, "z" + text[1:])
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    said = r"in/of/.+: damaged: its SHA-256 differs from that in in/of/\.SHA256SUMS"
    with pytest.raises(InputError, match=said), guarded("x", [Path("in")], {}):
        pytest.fail("it was read")
    assert path.stat().st_mtime_ns > before.st_mtime_ns  # so that DVC looks at it


def test_a_file_whose_name_is_not_utf8_is_guarded_too() -> None:
    """Such as a licence that came in a zip archive of Windows."""
    with atomic_folder(Path("in/of"), summed=True) as folder:
        (folder / "LICEN\udcc7A").write_text("a")
    with guarded("x", [Path("in")], {}) as digest:
        assert digest()
    (Path("in/of") / "LICEN\udcc7A").write_text("b")
    with pytest.raises(InputError, match=r"^in/of/LICEN\udcc7A: damaged"), guarded("x", [Path("in")], {}):
        pass


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stage_asked_to_stop_ends_although_a_library_goes_on_after_any_error(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    said = "x: asked to stop; run it again"
    with pytest.raises(Interrupted, match=said), guarded("x", [], {}), suppress(Exception):
        signal.raise_signal(number)
    assert signal.getsignal(number) is before


@pytest.mark.parametrize("number", STOPPING)
def test_a_stage_asked_to_stop_during_its_imports_ends_in_the_same_way(number: signal.Signals) -> None:
    done = python(f"import stages, signal; signal.raise_signal({int(number)})", "stages.x")
    assert (done.returncode, done.stderr) == (75, "asked to stop; run it again\n")


def test_a_stage_ends_with_the_dvc_that_started_it(tmp_path: Path) -> None:
    stage = f"import stages\n{HOLD}"
    start = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {stage!r}]).wait()"
    environment = {"PYTHONPATH": str(ROOT), "DVC_STAGE": "x"}
    with subprocess.Popen(
        [sys.executable, "-c", start], cwd=tmp_path, env=environment, stdin=-1, stdout=-1, stderr=-1, text=True
    ) as dvc:
        assert dvc.stdout is not None
        assert dvc.stderr is not None
        assert dvc.stdout.readline() == "held\n"
        dvc.kill()
        assert dvc.stderr.read().endswith("Interrupted: x: asked to stop; run it again\n")  # until the stage has ended
    assert running() == []


def _digest(settings: dict[str, Any]) -> str:
    with guarded("x", [Path("in")], settings) as digest:
        return digest()


def test_another_setting_input_or_module_gives_another_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints are found by this digest: a run must not continue from those of another."""
    first = _digest({"lr": 1})
    assert _digest({"lr": 1}) == first
    Path("params.yaml").write_text("lr: 2\nother: 1\n")
    assert _digest({"lr": 2}) != first
    Path("params.yaml").write_text("lr: 1\nother: 1\n")
    Path("in/a").write_text("b")
    assert _digest({"lr": 1}) != first
    Path("in/a").write_text("a")
    edited = guard._code() | {"retrace/core/guard.py": "edited"}
    monkeypatch.setattr(guard, "_code", lambda: edited)
    assert _digest({"lr": 1}) != first


def test_a_setting_that_yaml_reads_as_a_date_is_part_of_the_digest() -> None:
    """Such as the name of a checkpoint, which a method starts from."""
    found = []
    for day in ("2024-01-01", "2024-01-02"):
        Path("params.yaml").write_text(f"methods: {{lora: {{checkpoint: {day}}}}}\n")
        found.append(_digest({"methods.lora": read_params()["methods"]["lora"]}))
    assert found[0] != found[1]


@pytest.mark.parametrize(
    ("name", "counts"),
    [("stages/long.py", True), ("retrace/sample/words.json", True), ("retrace/report/page.css", False)],
)
def test_code_that_is_edited_while_a_stage_runs_fails_it(tmp_path: Path, name: str, counts: bool) -> None:
    """A file beside an imported module is code too, as DVC records its folder: here words, which the import reads."""
    edit = f"with guarded('x', [], {{}}): Path('{name}').write_text('edited')"
    imports = "from pathlib import Path\nimport retrace.sample.language\nfrom retrace.core.guard import guarded"
    done = _run_stage(tmp_path, "long", f"{imports}\n{edit}")
    assert (f"InputError: {name} changed while x ran; run it again" in done.stderr) == counts, done.stderr
    assert (done.returncode != 0) == counts


def test_what_the_guard_takes_for_code_is_what_dvc_takes_for_code() -> None:
    listed = re.findall(r"^!/retrace/\*\*/\*(\.\w+)$", (ROOT / ".dvcignore").read_text(), re.MULTILINE)
    assert tuple(listed) == guard.KINDS


def test_what_runs_in_the_workspace_of_a_study_is_running_here() -> None:
    path = WORKSPACES / "two-cores" / LOCKS / "pretrain-0.lock"
    lock = take(path)
    assert lock is not None
    with lock:
        assert running() == [Holder(path, os.getpid(), socket.gethostname())]
