"""Data sets of the Hugging Face Hub: the repositories that data/params.yaml names, each at a commit → data/hub.

Running text, labelled sentences and questions, in the official formats and under the names that stages read, checked;
findings and licences are in data/hub/card.json. What was downloaded before is read without the network.

    python -m stages.sources.hub
"""

from retrace.core.errors import exit_cleanly
from retrace.core.files import atomic_folder, write_json
from retrace.core.guard import guarded
from retrace.core.paths import source_folder
from retrace.core.records import SOURCES, timed
from retrace.datasets.card import make_card
from retrace.hub.settings import HubParams
from retrace.hub.source import write_source


def main() -> None:
    params = HubParams.read()
    with (
        guarded("hub", [], params.settings),
        timed("source", folder=SOURCES),
        atomic_folder(source_folder("hub"), summed=True) as folder,
    ):
        origin = write_source(folder, params.hub)
        card = make_card(folder)
        write_json(folder / "card.json", card | {"origin": origin})
        print(*card["findings"], sep="\n")


if __name__ == "__main__":
    exit_cleanly(main)
