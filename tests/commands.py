"""Several commands in one process, which imports what they need once: `python -m tests.commands JSON`.

JSON is a list of commands, each a list of a module of `stages` and its arguments. For each a line of json is printed,
with its exit code and what it said.
"""

import io
import json
import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from unittest import mock

from tests.toy import ROOT


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str


def retrace(*arguments: object) -> Done:
    """Run `retrace` in this process."""
    from retrace.cli.main import main  # here, as runpy warns of a module that is there already

    return _run(main, "retrace", *arguments)


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


def run(module: str, *arguments: str) -> Done:
    """Run a stage as `python -m` does, or `retrace`, in this process."""
    if module == "retrace":
        return retrace(*arguments)
    return _run(partial(runpy.run_module, f"stages.{module}", run_name="__main__"), module, *arguments)


def _run(main: Callable[[], object], *arguments: object) -> Done:
    out, err, code = io.StringIO(), io.StringIO(), 0
    with mock.patch.object(sys, "argv", [*map(str, arguments)]), redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
    return Done(code, out.getvalue(), err.getvalue())


if __name__ == "__main__":
    for command in json.loads(sys.argv[1]):
        print(json.dumps(asdict(run(*command))), flush=True)
