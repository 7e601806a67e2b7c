"""How fast text becomes a token stream on disk, compared with a bare call to `tokenizers` on the same documents.

Both sides run in turn, five times, on the same cores and with the project's own tokenizer.

    python benchmarks/tokenising.py                    # the sample, after `dvc repro`
    python benchmarks/tokenising.py --project FOLDER   # another clone, such as one with WikiText-2
"""

import json
import os
import statistics
import tempfile
from pathlib import Path

from harness import ROOT, plain_parser, seconds_in_turn

from retrace.core.paths import TEXT
from retrace.datasets.text import read_documents, text_path
from retrace.tokens.blocks import write_stream
from retrace.tokens.tokenizer import load_tokenizer

ROUNDS = 5


def main() -> None:
    parser = plain_parser(__doc__)
    parser.add_argument("--project", type=Path, default=ROOT, help="a clone in which `dvc repro` has run")
    os.chdir(parser.parse_args().project)
    tokenizer = load_tokenizer(Path("models/tokenizer"))
    path = text_path(TEXT, "train")
    documents = list(read_documents(path))
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "train.npy"
        sides = {
            "stream": lambda: write_stream(target, tokenizer, [documents]),
            "bare": lambda: tokenizer._tokenizer.encode_batch_fast(documents),
        }
        seconds = seconds_in_turn(sides, ROUNDS)
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    megabytes = sum(len(document.encode()) for document in documents) / 1e6
    speed = {name: round(megabytes / median, 2) for name, median in medians.items()}
    print(json.dumps({"megabytes_a_second": speed, "ratio": round(medians["bare"] / medians["stream"], 2)}, indent=2))


if __name__ == "__main__":
    main()
