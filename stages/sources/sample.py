"""The embedded corpus: params.yaml → data/sample, in the official formats, the same bytes every time.

python -m stages.sources.sample
"""

from stages.corpus.card import make_card
from stages.corpus.sample.corpus import SampleSettings, write_sample
from stages.corpus.source import source_folder
from stages.harness.errors import exit_cleanly
from stages.harness.guard import guarded
from stages.harness.records import write_json, written_folder
from stages.harness.settings import build, read_params, values_of


def main() -> None:
    params = read_params()
    settings = build(SampleSettings, params, "sample")
    with guarded("sample", [], values_of(params, ["sample"])), written_folder(source_folder("sample")) as folder:
        write_sample(folder, settings)
        card = make_card(folder)
        write_json(folder / "card.json", card)
        print(*card["findings"], sep="\n")


if __name__ == "__main__":
    exit_cleanly(main)
