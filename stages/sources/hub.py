"""Data sets of the Hugging Face Hub: the repositories that data/params.yaml names, each at a commit → data/hub.

Running text, labelled sentences and questions, in the official formats and under the names that stages read, checked;
findings and licences are in data/hub/card.json. What was downloaded before is read without the network.

    python -m stages.sources.hub
"""

from retrace.core.errors import exit_cleanly
from retrace.datasets.card import make_card, new_source, write_card
from retrace.hub.settings import HubParams
from retrace.hub.source import write_source


def main() -> None:
    params = HubParams.read()
    with new_source("hub", [], params.settings) as folder:
        origin = write_source(folder, params.hub)
        write_card(folder, make_card(folder) | {"origin": origin})


if __name__ == "__main__":
    exit_cleanly(main)
