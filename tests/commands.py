"""Commands of `retrace` in this process, code in a process of its own, and programs that stand in for others."""

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from retrace.cli.main import main
from tests.toy import ROOT


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str


def retrace(*arguments: object) -> Done:
    """Run `retrace` in this process."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with mock.patch.object(sys, "argv", ["retrace", *map(str, arguments)]), redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
    return Done(code, out.getvalue(), err.getvalue())


def refused(*arguments: object) -> str:
    """The one line in which `retrace` refuses, and does nothing else."""
    done = retrace(*arguments)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done
    return done.err


def python(code: str, *arguments: str, folder: Path = ROOT, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own, which has these variables too."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def write_program(path: Path, script: str) -> Path:
    """A program in place of a real one."""
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def pretend_gpus(folder: Path, count: int) -> dict[str, str]:
    """The environment of a process that sees this many GPUs, from GPU-0 on, with their leases in the folder."""
    folder.mkdir(exist_ok=True)
    write_program(folder / "nvidia-smi", "\n".join(f"echo GPU-{number}" for number in range(count)))
    return {"PATH": f"{folder}:{os.environ['PATH']}", "TMPDIR": str(folder), "RETRACE_SHARE_GPUS": "false"}
