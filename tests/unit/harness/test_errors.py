import errno
import shlex
import subprocess
import sys

import pytest
from safetensors import SafetensorError

from stages.harness.errors import InputError, ResumableError, exit_cleanly
from tests.toy import ROOT


def _raise(error: BaseException):
    def main() -> None:
        raise error

    return main


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (InputError("a.tsv:3: label '7' is not allowed"), "error: a.tsv:3: label '7' is not allowed\n"),
        (FileNotFoundError(errno.ENOENT, "no", "x.json"), "error: x.json: no such file or folder\n"),
        (OSError(errno.ENOSPC, "full", "m.bin"), "error: m.bin: full; nothing was left half-written\n"),
        (SafetensorError("header too large"), "error: weights: header too large\n"),
    ],
)
def test_one_line_and_exit_code_2(error: Exception, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        exit_cleanly(_raise(error))
    assert caught.value.code == 2
    assert capsys.readouterr().err == line


def test_a_defect_keeps_its_traceback() -> None:
    with pytest.raises(PermissionError):
        exit_cleanly(_raise(PermissionError(errno.EACCES, "no")))


def test_traceback_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETRACE_TRACEBACK", "1")
    with pytest.raises(InputError):
        exit_cleanly(_raise(InputError("x")))


def test_work_that_goes_on_later_has_an_exit_code_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        exit_cleanly(_raise(ResumableError("asked to stop after step 3")))
    assert caught.value.code == 75
    assert capsys.readouterr().err == "asked to stop after step 3\n"


def test_a_reader_that_has_read_enough_is_no_error() -> None:
    lines = "from stages.harness.errors import exit_cleanly; exit_cleanly(lambda: [print(n) for n in range(10**5)])"
    command = f"{shlex.quote(sys.executable)} -c {shlex.quote(lines)} | head -n 1"
    done = subprocess.run(["sh", "-c", command], cwd=ROOT, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("0\n", "")
