"""A checkpoint to start from: `model` in params.yaml → data/model, or `checkpoints.<name>` → data/checkpoints/<name>.

Copies the config, the weights (safetensors) and the tokenizer from the Hugging Face Hub or a folder, and checks them. A
missing tokenizer.json is made from the vocabulary files. source.json records where the checkpoint is from. With a
`random_seed`, its weights are replaced by random ones. If `model.checkpoint` is null, training starts from random
weights, and data/model has only a source.json that says so.

    python -m stages.sources.model [--name NAME]
"""

import argparse

from retrace.core.errors import exit_cleanly
from retrace.core.files import atomic_folder, write_json
from retrace.core.guard import guarded
from retrace.core.paths import CHECKPOINT, FACTS, checkpoint_facts, named_checkpoint
from retrace.core.records import SOURCES, timed
from retrace.core.settings import entry_name, read_params
from retrace.hub.checkpoint import copy_checkpoint, set_padding
from retrace.hub.pins import PinnedFolder, read_initial_checkpoint
from retrace.models.settings import with_family


def main() -> None:
    parser = argparse.ArgumentParser(description="Fetch a model to start from.")
    about = "an entry under checkpoints in data/params.yaml; model of params.yaml if absent"
    parser.add_argument("--name", type=entry_name, help=about)
    name: str | None = parser.parse_args().name
    start = read_initial_checkpoint(read_params(), name)
    origin = start.origin
    read = [origin.path] if isinstance(origin, PinnedFolder) else []
    target, lock = (CHECKPOINT, "model") if name is None else (named_checkpoint(name), f"model-{name}")
    with (
        guarded(lock, read, start.settings),
        timed("model", name is None, SOURCES),
        atomic_folder(target, summed=True) as folder,
    ):
        if origin is None:
            write_json(folder / FACTS, {"from": None})
            print("training starts from random weights")
            return
        copy_checkpoint(folder, start, origin)
        if name is not None:
            set_padding(folder)  # pretraining sets it itself
            write_json(folder / FACTS, with_family(checkpoint_facts(folder), start.family))
        weights = "" if start.seed is None else f"random weights, drawn with seed {start.seed}, and all else from "
        print(f"training starts from {weights}{origin}")


if __name__ == "__main__":
    exit_cleanly(main)
