"""`retrace repro`, which is `dvc repro` that pulls and pushes, and `retrace stop`, which asks runs to save and stop."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import psutil
import typer

from retrace.cli.check import require_ready
from retrace.core.errors import as_shell
from retrace.core.guard import Holder, handled, running
from retrace.core.paths import require_checkout

DVC = (sys.executable, "-m", "dvc", "repro")
CONTEXT = {"ignore_unknown_options": True}  # options of `dvc repro`


Push = Annotated[bool, typer.Option("--push", help="send each stage's results to the remote when it is done")]


def repro(
    arguments: Annotated[list[str] | None, typer.Argument(help="stages and options for dvc repro")] = None,
    push: Push = False,
) -> None:
    """Check the settings, then run `dvc repro`, with results from the default remote where it has them."""
    require_checkout()
    prefer_this_python()
    if all(option.startswith("-") for option in arguments or ()):  # named stages may need less
        require_ready()
    from retrace.cli.remote import Sender, pull_option  # here, as DVC takes a second to import

    with Sender() if push else nullcontext():
        if code := run_dvc([*DVC, *pull_option(), *(arguments or ())]):
            raise typer.Exit(code)


def prefer_this_python() -> None:
    """Have DVC's stages find this Python first, also where its environment is not activated, as in a cron job."""
    folder = Path(sys.executable).parent
    if Path(shutil.which("python") or "").parent != folder:
        os.environ["PATH"] = os.pathsep.join([str(folder), os.environ.get("PATH", os.defpath)])


def run_dvc(command: Sequence[str], folder: Path = Path()) -> int:
    """Run DVC and return the exit code that a shell gives; Ctrl-C reaches DVC by itself, SIGTERM is passed on."""
    with (
        handled(lambda *_: None, [signal.SIGINT]),
        subprocess.Popen(command, cwd=folder) as dvc,
        handled(lambda number, _: dvc.send_signal(number), [signal.SIGTERM]),
    ):
        return as_shell(dvc.wait())


def stop() -> None:
    """Ask the runs in this folder, and in the workspaces of studies, to save their state and exit.

    The next `dvc repro` there resumes them.
    """
    require_checkout()
    found = running()
    for each in found:
        print(f"{each.path.stem}: {ask(each)}")
    if not found:
        print("nothing is running here")


def ask(holder: Holder) -> str:
    """Ask a run to stop; returns what was done, in words.

    The process ID alone proves nothing: other machines and containers may share the folder, and their IDs may
    belong to unrelated processes here. Only a process that has the lock's file open is the run. If its launcher would
    restart it (--max_restarts), the launcher is asked, which passes the signal on.
    """
    number, host = holder.process, holder.host or "another machine"
    try:
        process = psutil.Process(number)
        if any(Path(file.path) == holder.path.resolve() for file in process.open_files()):
            is_restarted = process.environ().get("TORCHELASTIC_MAX_RESTARTS", "0") != "0"
            launcher = process.parent() if is_restarted else None
            (launcher or process).send_signal(signal.SIGTERM)
            return f"process {number} was asked to stop"
    except psutil.AccessDenied:
        return f"process {number} is another user's and was not asked to stop"
    except psutil.NoSuchProcess:
        pass
    return f"is running as process {number} on {host}, not here, so it was not asked to stop"
