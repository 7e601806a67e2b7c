"""`retrace repro`: `dvc repro` with a remote at both ends."""

import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from retrace.cli.remote import pull_option, sending
from retrace.core.guard import handled

DVC = (sys.executable, "-m", "dvc", "repro")
CONTEXT = {"ignore_unknown_options": True}  # options of `dvc repro`


def repro(
    arguments: Annotated[list[str] | None, typer.Argument(help="passed on to dvc repro: stages, options")] = None,
    push: Annotated[
        bool, typer.Option("--push", help="send each stage's results to the remote when it is done")
    ] = False,
) -> None:
    """Do what `dvc repro` does, and take from the default remote what it has of what is out of date."""
    with sending(push):
        code = run([*DVC, *pull_option(), *(arguments or ())])
        if code:
            raise typer.Exit(code)


def run(command: Sequence[str]) -> int:
    """Run DVC to its end; its exit code, as a shell has it. It hears of Ctrl-C by itself; SIGTERM is passed on."""
    with (
        handled(lambda *_: None, [signal.SIGINT]),
        subprocess.Popen(command) as dvc,
        handled(lambda number, _: dvc.send_signal(number), [signal.SIGTERM]),
    ):
        code = dvc.wait()
        return code if code >= 0 else 128 - code
