"""A `dvc repro` in a process group of its own, whose stage can be asked to save its state and end."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil


class Worker:
    """A command that was started; its output goes to the end of a file, or where ours goes."""

    def __init__(
        self, command: Sequence[str], log: Path | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        file = None if log is None else log.open("ab")
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=environment, process_group=0
        )
        if file is not None:
            file.close()
        self._asked: set[int] = set()

    def poll(self) -> int | None:
        """The exit code, None while the command lasts or, where it was killed, what it had started lasts."""
        code = self.process.poll()
        if code is not None and code < 0 and self._programs():
            self.stop()  # the stage, which nobody would record
            return None
        return code

    def stop(self) -> None:
        """Ask the stage to end, once: launchers and DVC then end by themselves, and say how it did."""
        for process in self._programs():
            with suppress(psutil.NoSuchProcess):
                if process.pid not in self._asked and not process.children():
                    self._asked.add(process.pid)
                    process.send_signal(signal.SIGTERM)

    def _programs(self) -> set[psutil.Process]:
        """What the command started: the processes of its group, and theirs, which may lead groups of their own."""
        found: set[psutil.Process] = set()
        for process in psutil.process_iter():
            with suppress(psutil.NoSuchProcess, ProcessLookupError):
                if os.getpgid(process.pid) == self.process.pid and process.status() != psutil.STATUS_ZOMBIE:
                    found.update((process, *process.children(recursive=True)))
        return {process for process in found if process.pid != self.process.pid}
