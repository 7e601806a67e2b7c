"""A model to start from: `model.from` in params.yaml → data/model, with where it is from in source.json.

From the Hugging Face Hub or from a folder; config, weights as safetensors and tokenizer, checked. Where params.yaml
names none, training starts from random weights and there is only source.json, which says so.

    python -m stages.sources.model
"""

import shutil
from pathlib import Path
from typing import Any

from huggingface_hub.repocard import metadata_load
from yaml import YAMLError

from stages.corpus.checkpoint import CHECKPOINT, FACTS
from stages.corpus.origin import PinnedFolder, read_origin
from stages.corpus.tokenizer import TOKENIZER_FILES, load_tokenizer
from stages.harness.errors import InputError, exit_cleanly
from stages.harness.guard import guarded
from stages.harness.hub import Pin, fetch
from stages.harness.plugins import plugin_names
from stages.harness.records import read_object, write_json, written_folder
from stages.harness.settings import check_value, read_params
from stages.nets.parameters import FILE as WEIGHTS
from stages.nets.parameters import INDEX, weight_files

CONFIG = "config.json"
PATTERNS = (CONFIG, WEIGHTS, "model-*-of-*.safetensors", INDEX, *TOKENIZER_FILES, "README.md", "LICENSE*")
FACTS_OF_CARD = ("license", "license_name", "license_link", "language", "datasets", "base_model")
FAMILIES = "stages.nets.families"


def main() -> None:
    params = read_params()
    origin = read_origin(params)
    family = check_value(params, "family", str)
    read = [origin.path] if isinstance(origin, PinnedFolder) else []
    with guarded("model", read, ["family", "model"]), written_folder(CHECKPOINT) as folder:
        if origin is None:
            write_json(folder / FACTS, {"from": None})
            print("training starts from random weights")
            return
        if isinstance(origin, Pin):
            source, name = fetch(origin, "model", PATTERNS), origin.repository
        else:
            source, name = origin.path, str(origin.path)
        check(source, name, family)
        for pattern in PATTERNS:
            for path in sorted(source.glob(pattern)):
                shutil.copyfile(path, folder / path.name)
        write_json(folder / FACTS, facts(origin, source))
        print(f"training starts from {origin}")


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
