import errno

import pytest

from stages.harness.errors import InputError, exit_cleanly


def _raise(error: BaseException):
    def main() -> None:
        raise error

    return main


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (InputError("a.tsv:3: label '7' is not allowed"), "error: a.tsv:3: label '7' is not allowed\n"),
        (FileNotFoundError(errno.ENOENT, "no", "x.json"), "error: x.json: no such file or folder\n"),
        (OSError(errno.ENOSPC, "full", "m.bin"), "error: m.bin: the disk is full; nothing was left half-written\n"),
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
