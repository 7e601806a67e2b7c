"""`retrace stop`: ask running stages to save and stop."""

import signal
from pathlib import Path

import psutil

from retrace.core.guard import Holder, running


def stop() -> None:
    """Ask what runs in this folder to save its state and end; the next `dvc repro` goes on from there."""
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
