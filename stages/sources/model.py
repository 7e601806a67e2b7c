"""A model to start from: `model` in params.yaml → data/model, or `models.<name>` → data/models/<name>.

From the Hugging Face Hub or from a folder; config, weights as safetensors and tokenizer, checked; source.json says
where it is from. Where `random` holds a seed, the weights are drawn anew. Where `model.from` names nothing, training
starts from random weights and there is only source.json, which says so.

    python -m stages.sources.model [--name NAME]
"""

import argparse
import shutil
from pathlib import Path
from typing import Any

from huggingface_hub.repocard import metadata_load
from yaml import YAMLError

from stages.corpus.checkpoint import CHECKPOINT, FACTS, named_checkpoint
from stages.corpus.origin import NAMED, PinnedFolder, Start, read_start
from stages.corpus.tokenizer import TOKENIZER_FILES, load_tokenizer
from stages.harness.errors import InputError, exit_cleanly
from stages.harness.guard import guarded
from stages.harness.hub import fetch
from stages.harness.pin import Pin
from stages.harness.plugins import plugin_names
from stages.harness.records import read_object, write_json, written_folder
from stages.harness.settings import read_params, values_of
from stages.nets.parameters import FILE as WEIGHTS
from stages.nets.parameters import INDEX, weight_files
from stages.nets.vocabulary import Vocabulary

CONFIG = "config.json"
PATTERNS = (CONFIG, WEIGHTS, "model-*-of-*.safetensors", INDEX, *TOKENIZER_FILES, "README.md", "LICENSE*")
FACTS_OF_CARD = ("license", "license_name", "license_link", "language", "datasets", "base_model")
FAMILIES = "stages.nets.families"


def main() -> None:
    name = read_name()
    params = read_params()
    start = read_start(params, name)
    origin, keys = start.origin, ["family", "model"] if name is None else [f"{NAMED}.{name}"]
    read = [origin.path] if isinstance(origin, PinnedFolder) else []
    target, lock = (CHECKPOINT, "model") if name is None else (named_checkpoint(name), f"model-{name}")
    with guarded(lock, read, values_of(params, keys)), written_folder(target) as folder:
        if origin is None:
            write_json(folder / FACTS, {"from": None})
            print("training starts from random weights")
            return
        fill(folder, start, origin)
        if name is not None:  # pretraining names it itself
            name_padding(folder)
        weights = "" if start.seed is None else f"random weights, drawn from {start.seed}, and all else of "
        print(f"training starts from {weights}{origin}")


def read_name() -> str | None:
    """The entry under `models` that the command line names."""
    parser = argparse.ArgumentParser(description="Fetch a model to start from.")
    parser.add_argument("--name", help="an entry under models in params.yaml; model itself if absent")
    return parser.parse_args().name


def fill(folder: Path, start: Start, origin: Pin | PinnedFolder) -> None:
    """Copy the files of the model and say where they are from.

    Raises InputError where they are not those of a model of its family.
    """
    if isinstance(origin, Pin):
        source, called = fetch(origin, "model", PATTERNS), origin.repository
    else:
        source, called = origin.path, str(origin.path)
    check(source, called, start.family)
    for pattern in PATTERNS:
        for path in sorted(source.glob(pattern)):
            shutil.copyfile(path, folder / path.name)
    if start.seed is not None:
        draw_weights(folder, start.seed)
    write_json(folder / FACTS, facts(origin, source) | ({} if start.seed is None else {"random": start.seed}))


def draw_weights(folder: Path, seed: int) -> None:
    """Put random weights in place of those of the model saved in `folder`."""
    from stages.nets.heads import make_model, pretraining_head, read_config  # here, for it takes seconds to import

    config = read_config(folder)
    for path in [*folder.glob("*.safetensors"), *folder.glob(INDEX)]:
        path.unlink()
    make_model(pretraining_head(config), config, seed, "eager").save_pretrained(folder)


def name_padding(folder: Path) -> None:
    """Write the tokenizer's padding into the config that names none, without which there is no classifier."""
    config = read_object(folder / CONFIG)
    if config.get("pad_token_id") is None:
        padding = Vocabulary.of(load_tokenizer(folder)).pad
        write_json(folder / CONFIG, {**config, "pad_token_id": padding})


def check(folder: Path, name: str, family: str) -> None:
    """Raise an InputError that calls the model `name` unless `folder` holds one of the family with all it takes."""
    for needed in (CONFIG, TOKENIZER_FILES[0]):
        if not (folder / needed).is_file():
            raise InputError(f"{name}: there is no {needed} in it")
    config = read_object(folder / CONFIG)
    found = config.get("model_type")
    families = plugin_names(FAMILIES)
    if found not in families:
        raise InputError(f"{name}: model_type: {found!r} is not allowed; expected one of {', '.join(families)}")
    if found != family:
        raise InputError(f"params.yaml: family: {family} is not allowed; {name} is a {found}")
    missing = [part for part in weight_files(folder) if not (folder / part).is_file()]
    if missing:
        raise InputError(f"{name}: there is no {missing[0]} in it; weights are read from safetensors only")
    tokens, embedded = load_tokenizer(folder).size, config.get("vocab_size", 0)
    if tokens > embedded:
        raise InputError(f"{name}: the tokenizer has {tokens} tokens, of which the model knows {embedded}")


def facts(origin: Pin | PinnedFolder, folder: Path) -> dict[str, Any]:
    """Where the model is from, and what its card says of it: licence, languages, data sets, the model it comes from."""
    pin = origin if isinstance(origin, Pin) else None
    said = {"from": str(origin), "repository": pin and pin.repository, "commit": pin and pin.commit}
    return said | {key: value for key, value in card(folder / "README.md").items() if key in FACTS_OF_CARD}


def card(path: Path) -> dict[str, Any]:
    """The metadata of a model card; none where it has none that can be read."""
    try:
        return metadata_load(path) or {} if path.is_file() else {}
    except (ValueError, YAMLError):
        return {}


if __name__ == "__main__":
    exit_cleanly(main)
