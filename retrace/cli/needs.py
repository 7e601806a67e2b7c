"""`retrace needs`: disk and memory that the runs of params.yaml take, and what there is, before any of them starts.

A study says it in its first stage. Memory is the most that tensors take in an update of any of the runs on one device,
as `retrace memory` estimates it; the program and the data come on top. Disk is of models: those fetched, those trained,
DVC's copies, and the states of the largest run while it lasts. Data and predictions are small beside them.
"""

import argparse

from retrace.core.errors import exit_cleanly
from retrace.core.settings import read_params

HELP = "disk and memory that the runs of params.yaml take, before they start"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No arguments."""


def run(arguments: argparse.Namespace) -> None:
    """Print what is needed and what there is.

    Raises InputError where it is clearly too little.
    """
    from retrace.estimates.needs import require_room  # here, as it takes seconds to load

    for line in require_room(read_params()):
        print(line)


def _main() -> None:
    parser = argparse.ArgumentParser(prog="retrace needs", description=__doc__)
    add_arguments(parser)
    run(parser.parse_args())


if __name__ == "__main__":
    exit_cleanly(_main)
