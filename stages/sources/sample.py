"""The embedded corpus: params.yaml → data/sample, in the official formats, the same bytes every time.

python -m stages.sources.sample
"""

from retrace.core.errors import exit_cleanly
from retrace.core.files import atomic_folder, write_json
from retrace.core.guard import guarded
from retrace.core.paths import source_folder
from retrace.core.settings import build, read_params, values_of
from retrace.datasets.card import make_card
from retrace.sample.generate import SampleSettings, write_sample


def main() -> None:
    params = read_params()
    settings = build(SampleSettings, params, "sample")
    with guarded("sample", [], values_of(params, ["sample"])), atomic_folder(source_folder("sample")) as folder:
        write_sample(folder, settings)
        card = make_card(folder)
        write_json(folder / "card.json", card)
        print(*card["findings"], sep="\n")


if __name__ == "__main__":
    exit_cleanly(main)
