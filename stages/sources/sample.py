"""The generated sample corpus: data/params.yaml → running text, sst2 and squad in data/, always the same bytes.

python -m stages.sources.sample
"""

from retrace.core.errors import exit_cleanly
from retrace.datasets.source import new_source
from retrace.sample.corpus import SampleParams, write_sample


def main() -> None:
    params = SampleParams.read()
    with new_source("sample", params) as source:
        write_sample(source, params.sample)
        source.write_cards()


if __name__ == "__main__":
    exit_cleanly(main)
