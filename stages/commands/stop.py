"""`retrace stop`: ask what runs in this folder to save its state and end; the next `dvc repro` goes on from there."""

import argparse
import os
import signal
from contextlib import suppress

from stages.harness.guard import running

HELP = "ask running stages to save and stop"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No arguments."""


def run(arguments: argparse.Namespace) -> None:
    """Signal every process that holds a stage's lock."""
    found = running()
    for name, process in found.items():
        with suppress(ProcessLookupError):  # it ended meanwhile
            os.kill(process, signal.SIGTERM)
            print(f"{name}: process {process} was asked to stop")
    if not found:
        print("nothing is running here")
