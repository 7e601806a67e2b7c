"""The embedded corpus: data/params.yaml → data/sample, in the official formats, the same bytes every time.

python -m stages.sources.sample
"""

from retrace.core.errors import exit_cleanly
from retrace.core.files import atomic_folder, write_json
from retrace.core.guard import guarded
from retrace.core.paths import source_folder
from retrace.core.records import SOURCES, timed
from retrace.datasets.card import make_card
from retrace.sample.corpus import SampleParams, write_sample


def main() -> None:
    params = SampleParams.read()
    with (
        guarded("sample", [], params.settings),
        timed("source", folder=SOURCES),
        atomic_folder(source_folder("sample"), summed=True) as folder,
    ):
        write_sample(folder, params.sample)
        card = make_card(folder)
        write_json(folder / "card.json", card)
        print(*card["findings"], sep="\n")


if __name__ == "__main__":
    exit_cleanly(main)
