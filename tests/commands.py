"""Several commands in one process, which imports what they need once: `python -m tests.commands JSON`.

JSON is a list of commands, each a list of a module of `stages` and its arguments. For each a line of json is printed,
with its exit code and what it said.
"""

import io
import json
import runpy
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass
from functools import partial
from unittest import mock


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
