"""Data sets of the Hugging Face Hub: the repositories that params.yaml names, each at a commit → data/hub.

Running text, labelled sentences and questions, in the official formats and under the names that stages read, checked;
what was found, and the licences, are in data/hub/card.json. What was fetched before is read without the network.

    python -m stages.sources.hub
"""

from retrace.core.errors import exit_cleanly
from retrace.core.files import atomic_folder, write_json
from retrace.core.guard import guarded
from retrace.core.paths import source_folder
from retrace.core.settings import build, read_params, values_of
from retrace.datasets.card import make_card
from retrace.hub.settings import HubSettings
from retrace.hub.source import write_source


def main() -> None:
    params = read_params()
    settings = build(HubSettings, params, "hub")
    read = values_of(params, ["hub.text", "hub.sst2", "hub.squad"])
    with guarded("hub", [], read), atomic_folder(source_folder("hub")) as folder:
        origin = write_source(folder, settings)
        card = make_card(folder)
        write_json(folder / "card.json", card | {"origin": origin})
        print(*card["findings"], sep="\n")


if __name__ == "__main__":
    exit_cleanly(main)
