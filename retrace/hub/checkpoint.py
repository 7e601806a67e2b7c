"""The files of a checkpoint to start from: checked, copied, and completed where possible.

Weights must be safetensors. A missing tokenizer.json is made from the vocabulary files.
"""

import shutil
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from huggingface_hub.repocard import metadata_load
from yaml import YAMLError

from retrace.core.errors import InputError
from retrace.core.files import read_object, write_json
from retrace.core.paths import FACTS
from retrace.core.settings import file_of, plugin_names
from retrace.core.weights import FILE as WEIGHTS
from retrace.core.weights import INDEX, require_whole, weight_files
from retrace.hub.pins import InitialCheckpoint, Pin, PinnedFolder
from retrace.hub.repository import fetch, listing
from retrace.tokens.bare_vocabulary import VOCABULARIES, make_tokenizer
from retrace.tokens.tokenizer import TOKENIZER_FILES, Vocabulary, load_tokenizer

CONFIG, TOKENIZER = "config.json", TOKENIZER_FILES[0]
PATTERNS = (CONFIG, WEIGHTS, "model-*-of-*.safetensors", INDEX, *TOKENIZER_FILES, "README.md", "LICENSE*")
FACTS_OF_CARD = ("license", "license_name", "license_link", "language", "datasets", "base_model")
FAMILIES = "retrace.families"
PICKLED = "pytorch_model*.bin"  # loading this format can execute arbitrary code


def copy_checkpoint(folder: Path, start: InitialCheckpoint, origin: Pin | PinnedFolder) -> None:
    """Copy the checkpoint's files from `origin` into `folder`, and write FACTS, which says where they are from.

    Raises InputError unless they are a model of the expected family with weights and a tokenizer.
    """
    if isinstance(origin, Pin):
        source, called = fetch(origin, "model", PATTERNS), origin.repository
    else:
        source, called = origin.path, str(origin.path)
    has_tokenizer = (source / TOKENIZER).is_file()
    check_model(source, called, start.family, start.family_key)
    check_weights(source, called, origin)
    for pattern in PATTERNS:
        for path in sorted(source.glob(pattern)):
            shutil.copyfile(path, folder / path.name)
    if not has_tokenizer:
        make_tokenizer(folder, called, start.family)
        print(f"{TOKENIZER} is made from its {' and '.join(VOCABULARIES[start.family])}")
    check_vocabulary(source if has_tokenizer else folder, called)
    found = facts(origin, source)
    if start.seed is not None:
        draw_weights(folder, start.seed)
        found["random"] = start.seed
    write_json(folder / FACTS, found)


def draw_weights(folder: Path, seed: int) -> None:
    """Replace the weights of the model saved in `folder` by random ones."""
    from retrace.models.heads import make_model, pretraining_head, read_config  # imported here, as it takes seconds

    config = read_config(folder)
    for path in [*folder.glob("*.safetensors"), *folder.glob(INDEX)]:
        path.unlink()
    make_model(pretraining_head(config), config, seed, "eager").save_pretrained(folder)


def set_padding(folder: Path) -> None:
    """Add the tokenizer's padding token to a config without one; classifiers need it."""
    config = read_object(folder / CONFIG)
    if config.get("pad_token_id") is None:
        padding = Vocabulary.of(load_tokenizer(folder)).pad
        write_json(folder / CONFIG, {**config, "pad_token_id": padding})


def check_model(folder: Path, name: str, family: str, key: str) -> None:
    """Raise InputError unless `folder` holds a model of the family that is set at `key`, and a tokenizer.

    Messages call the model `name`.
    """
    if not (folder / CONFIG).is_file():
        raise InputError(f"{name}: there is no {CONFIG} in it")
    found = read_object(folder / CONFIG).get("model_type")
    families = plugin_names(FAMILIES)
    if found not in families:
        raise InputError(f"{name}: model_type: {found!r} is not allowed; expected one of {', '.join(families)}")
    if found != family:
        raise InputError(f"{file_of(key)}: {key}: {family} is not allowed; {name} is a {found}")
    bare = VOCABULARIES.get(family, ())
    if not (folder / TOKENIZER).is_file() and not (bare and all((folder / file).is_file() for file in bare)):
        otherwise = f", nor {' and '.join(bare)} to make one from" if bare else ""
        raise InputError(f"{name}: there is no {TOKENIZER} in it{otherwise}")
    _check_sizes(folder / CONFIG)


def _check_sizes(path: Path) -> None:
    """Raise InputError unless transformers can make a model of this config; no memory is allocated for its weights."""
    import torch  # imported here, as they take seconds
    from transformers import AutoModel

    from retrace.models.heads import read_config

    try:
        with torch.device("meta"):
            AutoModel.from_config(read_config(path.parent))
    except Exception as error:  # of any kind, depending on the key
        said = " ".join(str(error).split())
        raise InputError(f"{path}: no model can be made of it: {said or type(error).__name__}") from None


def check_weights(folder: Path, name: str, origin: Pin | PinnedFolder) -> None:
    """Raise InputError unless `folder` holds all weights as safetensors."""
    parts = weight_files(folder)
    missing = [part for part in parts if not (folder / part).is_file()]
    if missing:
        there = listing(origin, "model") if isinstance(origin, Pin) else [path.name for path in folder.iterdir()]
        is_pickled = missing == [WEIGHTS] and any(fnmatch(file, PICKLED) for file in there)
        hint = f"; docs/models.md has the commands that convert its {PICKLED}" if is_pickled else ""
        raise InputError(f"{name}: there is no {missing[0]} in it; weights are read from safetensors only{hint}")
    for part in parts:
        require_whole(folder / part)


def check_vocabulary(folder: Path, name: str) -> None:
    """Raise InputError unless the model has an embedding for every token of its tokenizer."""
    tokens, embedded = load_tokenizer(folder).size, read_object(folder / CONFIG).get("vocab_size", 0)
    if tokens > embedded:
        raise InputError(f"{name}: the tokenizer has {tokens} tokens, but the model only {embedded} embeddings")


def facts(origin: Pin | PinnedFolder, folder: Path) -> dict[str, Any]:
    """Where the model is from, and what its card says: licence, languages, data sets, base model."""
    pin = origin if isinstance(origin, Pin) else None
    try:
        card = metadata_load(folder / "README.md") or {}
    except (OSError, ValueError, YAMLError):
        card = {}
    source = {"from": str(origin), "repository": pin and pin.repository, "commit": pin and pin.commit}
    return source | {key: card[key] for key in card if key in FACTS_OF_CARD}
