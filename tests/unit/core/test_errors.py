import errno
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from safetensors import SafetensorError

from retrace.core.errors import DivergedError, InputError, Interrupted, exit_cleanly
from tests.commands import python
from tests.toy import ROOT


def _raise(error: BaseException):
    def main() -> None:
        raise error

    return main


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (InputError("a.tsv:3: label '7' is not allowed"), 2, "error: a.tsv:3: label '7' is not allowed\n"),
        (FileNotFoundError(errno.ENOENT, "no", "x.json"), 2, "error: x.json: no such file or folder\n"),
        (FileNotFoundError("No such file: m.st"), 2, "error: m.st: no such file, or it cannot be read\n"),
        (PermissionError(errno.EACCES, "Permission denied", "a/b"), 2, "error: a/b: Permission denied\n"),
        (OSError(errno.ENOSPC, "full", "m.bin"), 2, "error: m.bin: full; nothing was left half-written\n"),
        (OSError(errno.EDQUOT, "quota", "m.bin"), 2, "error: m.bin: quota; nothing was left half-written\n"),
        (MemoryError(), 2, "error: out of memory; use a smaller model, smaller batches or less data\n"),
        (SafetensorError("header too large"), 2, "error: weights: header too large\n"),
        (InputError("x: \x1b]0;a\x07\nerror: \x9b"), 2, "error: x: \\x1b]0;a\\x07\\nerror: \\x9b\n"),
        (DivergedError("the loss is nan"), 3, "error: the loss is nan\n"),
        (Interrupted("asked to stop after step 3"), 75, "asked to stop after step 3\n"),
    ],
)
def test_an_error_ends_in_one_line_with_its_own_exit_code(error: BaseException, code: int, line: str, capsys) -> None:
    with pytest.raises(SystemExit) as caught:
        exit_cleanly(_raise(error))
    assert caught.value.code == code
    assert capsys.readouterr().err == line


@pytest.mark.parametrize(
    ("asked", "error", "raised"),
    [
        ("", PermissionError(errno.EACCES, "of no file"), PermissionError),
        ("", BrokenPipeError(errno.EPIPE, "the hub went away"), BrokenPipeError),  # not a reader that stopped early
        ("1", InputError("x"), InputError),
        ("0", InputError("x"), SystemExit),
    ],
)
def test_bugs_keep_their_traceback_and_input_errors_on_request(monkeypatch, asked: str, error, raised) -> None:
    monkeypatch.setenv("RETRACE_TRACEBACK", asked)
    with pytest.raises(raised):
        exit_cleanly(_raise(error))


def test_messages_hide_credentials_in_urls() -> None:
    assert str(InputError("http://ada:se:cret@hub.org/a@b: refused")) == "http://hub.org/a@b: refused"
    assert str(InputError("http://ada:se@cret@hub.org: refused")) == "http://hub.org: refused"
    assert str(InputError("s3://b/c, org/n@1")) == "s3://b/c, org/n@1"


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_work_finishes_although_nobody_reads_its_output(tmp_path: Path, stream: str) -> None:
    work = (
        "import sys; from pathlib import Path; from retrace.core.errors import exit_cleanly\n"
        f"def work():\n    for n in range(10**4): print('a line of what is printed', file=sys.{stream}, flush=True)\n"
        f"    Path({str(tmp_path / 'done')!r}).write_text('yes')\n"
        "exit_cleanly(work)"
    )
    reading, writing = os.pipe()
    os.close(reading)
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: writing}
    done = subprocess.run([sys.executable, "-c", work], cwd=ROOT, check=True, **streams)
    os.close(writing)
    assert {done.stdout, done.stderr} == {None, b""}
    assert (tmp_path / "done").read_text() == "yes"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux only")
def test_output_that_cannot_be_written_is_one_line() -> None:
    work = "from retrace.core.errors import exit_cleanly; exit_cleanly(lambda: print('much'))"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-c", work], cwd=ROOT, stdout=full, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (2, b"error: output: No space left on device\n")
    subprocess.run(f"{sys.executable} -c {shlex.quote(work)} >&-", shell=True, cwd=ROOT, check=True)


def test_a_stage_of_dvc_exits_at_once_with_all_its_output() -> None:
    work = (
        "import atexit; from retrace.core.errors import exit_cleanly; atexit.register(print, 'registered')\n"
        "exit_cleanly(lambda: print('printed')); print('went on')"
    )
    done = python(work, DVC_STAGE="x")
    assert (done.returncode, done.stdout, done.stderr) == (0, "printed\nregistered\n", "")


def test_a_character_that_a_terminal_lacks_is_written_as_its_code() -> None:
    work = "from retrace.core.errors import exit_cleanly; exit_cleanly(lambda: print('5.1 – 5.3'))"
    assert python(work, PYTHONIOENCODING="latin-1").stdout == "5.1 \\u2013 5.3\n"
