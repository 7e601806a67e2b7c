"""`retrace repro` with a remote that is a folder: what it sends and when, what it takes, and what it does without."""

import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from threading import Thread
from unittest.mock import Mock

import pytest

from retrace.cli import remote, repro, spread
from tests import warm
from tests.commands import Done, refused, retrace
from tests.toy import ROOT

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what DVC uses

PIPELINE = """
stages:
  first:
    cmd: {python} -m first
    deps: [first.py]
    outs: [folder]
    metrics: [metric.json: {{cache: false}}]
  second:
    cmd: {python} -m second
    deps: [folder, second.py]
    outs: [made]
"""
FIRST = """
from pathlib import Path
Path("folder/below").mkdir(parents=True)
for name in ("one", "below/two"):
    Path("folder", name).write_text(name * 500)
Path("metric.json").write_text("{}")
print("first ran")
"""
SECOND = """
from pathlib import Path
Path("made").write_text("made of " + Path("folder/one").read_text())
print("second ran")
"""
WAITS = """
import sys, time
from pathlib import Path
end = time.monotonic() + 60
while not list(Path("../remote/runs").glob("*/*/*")):  # what is sent last
    assert time.monotonic() < end
    time.sleep(0.02)
"""
CONFIG = """
[core]
    analytics = false
    no_scm = true
    remote = storage
['remote "storage"']
    url = ../../remote
    verify = true
"""
NOT_SENT = "error: not sent to remote storage: "


def checkout(folder: Path, second: str = SECOND) -> Path:
    """A pipeline of two stages that were not run, and the folder beside it as its remote."""
    (folder / ".dvc").mkdir(parents=True)
    (folder / ".dvc/config").write_text(CONFIG)
    (folder / "dvc.yaml").write_text(PIPELINE.format(python=" ".join(warm.COMMAND)))
    (folder / "first.py").write_text(FIRST)
    (folder / "second.py").write_text(second)
    return folder


@pytest.fixture(scope="module", autouse=True)
def warm_dvc() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repro, "DVC", (*warm.COMMAND, *repro.DVC[1:]))
        patch.setattr(spread, "DVC", (*warm.COMMAND, *spread.DVC[1:]))
        patch.setattr(remote, "PAUSE", 0.05)
        patch.setenv("PYTHONPATH", str(ROOT))
        yield


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory, warm_dvc: None) -> tuple[Path, Done]:
    """A pipeline that was run and sent, whose second stage ends when its first was sent, and what was said."""
    folder = tmp_path_factory.mktemp("sent")
    with chdir(checkout(folder / "project", WAITS + SECOND)):
        return folder, retrace("repro", "--push")


@pytest.fixture
def other(sent: tuple[Path, Done], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout in which nothing was run or recorded, as the current folder, and a copy of the remote."""
    shutil.copytree(sent[0] / "remote", tmp_path / "remote")
    monkeypatch.chdir(checkout(tmp_path / "other", WAITS + SECOND))
    return tmp_path / "other"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout whose remote is not there, as the current folder."""
    monkeypatch.chdir(checkout(tmp_path / "project"))
    return tmp_path / "project"


def files(folder: Path, of: str = "*") -> dict[str, bytes]:
    """The files of a cache or remote."""
    found = (path for path in folder.glob(f"{of}/**/*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def starts(folder: Path, text: bytes) -> Path:
    """The file of a cache or remote that starts with a text."""
    (name,) = (name for name, content in files(folder).items() if content.startswith(text))
    return folder / name


def test_a_stage_is_sent_while_the_next_one_runs(sent: tuple[Path, Done]) -> None:
    folder, done = sent
    said = "sent to remote storage: folder, 4 files\nsent to remote storage: made, 1 files\n"
    assert (done.code, done.out) == (0, said)
    assert files(folder / "remote") == files(folder / "project/.dvc/cache")
    assert len(files(folder / "remote", "files")) == 5  # two in a folder, its list, a metric that is not cached, a file


def test_what_was_sent_is_taken_where_nothing_was_recorded(other: Path, sent: tuple[Path, Done], capfd) -> None:
    assert retrace("repro") == Done(0, "", "")
    assert " ran" not in capfd.readouterr().out
    for name in ("folder/one", "folder/below/two", "metric.json", "made", "dvc.lock"):
        assert Path(name).read_bytes() == (sent[0] / "project" / name).read_bytes()


def test_a_damaged_file_of_the_remote_is_not_used(other: Path, sent: tuple[Path, Done], capfd) -> None:
    made = starts(other.parent / "remote", b"made")
    content = made.read_bytes()
    made.chmod(0o644)
    made.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    made.chmod(0o444)  # by which DVC takes a file of its cache for sound
    shutil.copy(sent[0] / "project/dvc.lock", other)
    assert retrace("repro").code == 0
    assert re.findall(r"\w+ ran", capfd.readouterr().out) == ["second ran"]
    assert Path("made").read_bytes() == content
    made.unlink()
    assert retrace("repro", "--push").code == 0
    assert made.read_bytes() == content


def test_a_cut_transfer_stops_no_stage_and_goes_on(tmp_path: Path, project: Path) -> None:
    remote_, cache = tmp_path / "remote", project / ".dvc/cache"
    remote_.mkdir()
    (remote_ / "files").touch()  # where a folder is to be
    done = retrace("repro", "--push")
    assert done.code == 1
    assert re.fullmatch(f"{NOT_SENT}.*; run the command again to send the results", done.err.splitlines()[-1])
    assert done.err.count(NOT_SENT) <= 2  # meanwhile, and in the end
    assert Path("made").is_file()
    (remote_ / "files").unlink()
    blocked = remote_ / starts(cache, b"below").relative_to(cache).parent  # one of two files of a folder
    blocked.parent.mkdir(parents=True)
    blocked.touch()
    assert retrace("repro", "--push").code == 1
    assert not [name for name in files(remote_) if name.endswith(".dir")]  # with it the folder would pass for whole
    blocked.unlink()
    assert retrace("repro", "--push").code == 0
    assert files(remote_) == files(cache)


def test_what_dvc_takes_from_its_run_cache_is_sent_too(tmp_path: Path, project: Path, capfd) -> None:
    """It ran before, and no lock file named it when sending began."""
    for words in ("made of", "other words than"):
        (project / "second.py").write_text(SECOND.replace("made of", words))
        assert retrace("repro").code == 0
    (project / "second.py").write_text(SECOND)
    capfd.readouterr()
    assert retrace("repro", "--push").code == 0
    assert " ran" not in capfd.readouterr().out
    assert files(tmp_path / "remote") == files(Path(".dvc/cache"))


def test_an_entry_whose_files_are_elsewhere_is_read_once(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The remote has those of all runs, and while stages run there is a look at the run cache every two seconds."""
    sender = remote.Sender()
    entry = project / ".dvc/cache/runs/00" / f"{0:064}" / f"{1:064}"
    entry.parent.mkdir(parents=True)
    entry.write_text(f"cmd: x\nouts:\n- path: made\n  md5: {'a' * 32}\n")
    monkeypatch.setattr(remote, "_read", read := Mock(wraps=remote._read))
    for _ in range(2):
        sender._send_new()
    read.assert_called_once()


def test_spread_sends_and_takes_too(tmp_path: Path, monkeypatch, capfd) -> None:
    for name in ("one", "other"):
        monkeypatch.chdir(checkout(tmp_path / name))
        assert retrace("spread", "-j", 1, "--push").code == 0
    assert files(tmp_path / "remote") == files(tmp_path / "one/.dvc/cache") == files(Path(".dvc/cache"))
    assert capfd.readouterr().out.count(" ran\n") == 2  # in one of the two


def test_a_failed_stage_ends_it_as_it_ends_dvc_and_those_before_it_are_sent(tmp_path: Path, project: Path) -> None:
    (project / "second.py").write_text("raise SystemExit('error: no luck')")
    done = retrace("repro", "--push")
    assert (done.code, done.out) == (255, "sent to remote storage: folder, 4 files\n")
    assert files(tmp_path / "remote") == files(Path(".dvc/cache"))


def test_a_remote_that_is_not_there_is_said_where_something_is_to_be_done(tmp_path: Path, project: Path, capfd) -> None:
    gone = f"remote storage: {tmp_path / 'remote'} is not there, is empty or does not answer; continuing without it\n"
    assert retrace("repro", "-s", "first") == Done(0, "", gone)
    assert re.findall(r"\w+ ran", capfd.readouterr().out) == ["first ran"]
    assert retrace("repro") == Done(0, "", gone)
    assert retrace("repro") == Done(0, "", "")
    Path(".dvc/config").write_text("[core]\n    no_scm = true\n")
    assert refused("repro", "--push") == f"error: {remote.NO_REMOTE}\n"
    Path(".dvc/config").write_text(CONFIG.replace("../../remote", "oss://a/b"))
    said = "error: --push: oss is supported, but requires 'dvc-oss' to be installed\n"
    assert refused("repro", "--push") == said


def test_sigterm_is_passed_on() -> None:
    before = signal.getsignal(signal.SIGTERM)

    def ask() -> None:
        while signal.getsignal(signal.SIGTERM) is before:  # which would end the tests
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    Thread(target=ask, daemon=True).start()
    assert repro.run_dvc((sys.executable, "-ISc", "import time; time.sleep(60)")) == 128 + signal.SIGTERM
