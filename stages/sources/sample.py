"""The embedded corpus: data/params.yaml → data/sample, in the official formats, always the same bytes.

python -m stages.sources.sample
"""

from retrace.core.errors import exit_cleanly
from retrace.datasets.card import make_card, new_source, write_card
from retrace.sample.corpus import SampleParams, write_sample


def main() -> None:
    params = SampleParams.read()
    with new_source("sample", [], params.settings) as folder:
        write_sample(folder, params.sample)
        write_card(folder, make_card(folder))


if __name__ == "__main__":
    exit_cleanly(main)
