"""`retrace needs`: disk and memory that the runs of params.yaml take, and what there is, before any of them starts.

`retrace study run` says it first. Memory is the most that tensors take in an update of any of the runs on one device,
as `retrace memory` estimates it; the program and the data come on top. Disk is of models: those fetched, those trained,
DVC's copies, and the states of the largest run while it lasts. Data and predictions are small beside them.
"""

from retrace.core.settings import read_params


def main() -> None:
    """Print what is needed and what there is.

    Raises InputError where it is clearly too little.
    """
    from retrace.estimates.needs import require_room  # here, as it takes seconds to load

    for line in require_room(read_params()):
        print(line)
