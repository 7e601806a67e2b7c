"""Data sets of the Hugging Face Hub: the repositories that data/params.yaml names, each at a commit → data/.

Running text, and the labelled sentences and questions of sst2 and squad, checked; findings and licences are in the
folders' card.json. What was downloaded before is read without the network.

    python -m stages.sources.hub
"""

from retrace.core.errors import exit_cleanly
from retrace.datasets.source import new_source
from retrace.hub.settings import HubParams
from retrace.hub.source import write_source


def main() -> None:
    params = HubParams.read()
    with new_source("hub", params) as source:
        source.write_cards(write_source(source, params.hub))


if __name__ == "__main__":
    exit_cleanly(main)
