"""`retrace repro`, which is `dvc repro` with a remote at both ends, and `retrace stop`, which has it save and stop."""

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import psutil
import typer

from retrace.core.errors import InputError
from retrace.core.guard import Holder, handled, running

DVC = (sys.executable, "-m", "dvc", "repro")
CONTEXT = {"ignore_unknown_options": True}  # options of `dvc repro`


def require_checkout(*files: str) -> None:
    """Raise InputError where the current folder lacks one of these files or DVC's folder, as those of a checkout do."""
    for name in files:
        if not Path(name).is_file():
            raise InputError(f"{name}: no such file; run it in the folder of a checkout")
    if not Path(".dvc").is_dir():
        raise InputError(".dvc: no such folder; run it in the folder of a checkout")


Push = Annotated[bool, typer.Option("--push", help="send each stage's results to the remote when it is done")]


def repro(
    arguments: Annotated[list[str] | None, typer.Argument(help="passed on to dvc repro: stages, options")] = None,
    push: Push = False,
) -> None:
    """Do what `dvc repro` does, and take from the default remote what it has of what is out of date."""
    require_checkout("dvc.yaml")
    from retrace.cli.remote import pull_option, sending  # here, as DVC takes a second to import, and stop needs none

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


def stop() -> None:
    """Ask what runs in this folder to save its state and end; the next `dvc repro` goes on from there."""
    require_checkout("params.yaml")
    found = running()
    for each in found:
        print(f"{each.path.stem}: {ask(each)}")
    if not found:
        print("nothing is running here")


def ask(holder: Holder) -> str:
    """Ask a run to stop, and say how that went.

    A number alone proves nothing: the folder may be shared with other machines and containers, whose processes have the
    numbers of strangers here. A process that has the lock's file open is the run. Of one that its launcher would start
    again (--max_restarts) the launcher is asked, which passes it on.
    """
    try:
        process = psutil.Process(holder.process)
        if any(Path(file.path) == holder.path.resolve() for file in process.open_files()):
            returns = process.environ().get("TORCHELASTIC_MAX_RESTARTS", "0") != "0"
            ((returns and process.parent()) or process).send_signal(signal.SIGTERM)
            return f"process {holder.process} was asked to stop"
    except psutil.AccessDenied:
        return f"process {holder.process} is another user's and was not asked to stop"
    except psutil.NoSuchProcess:
        pass
    return (
        f"runs as process {holder.process} of {holder.host or 'another machine'}, not here, and was not asked to stop"
    )
