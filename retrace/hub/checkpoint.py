"""The files of a checkpoint to start from: checked, copied, and completed where possible.

Weights must be safetensors. A missing tokenizer.json, such as SciBERT's, is made from the vocabulary files.
"""

import shutil
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from huggingface_hub.repocard import metadata_load

from retrace.core.errors import InputError, first_line, one_line
from retrace.core.files import read_object, write_json
from retrace.core.paths import FACTS
from retrace.core.settings import file_of, plugin_names, require_one_of
from retrace.core.weights import FILE as WEIGHTS
from retrace.core.weights import INDEX, require_whole, weight_files
from retrace.hub.pins import InitialCheckpoint, Pin, PinnedFolder
from retrace.hub.repository import fetch, is_text, listing
from retrace.models.settings import FAMILIES, constants_of
from retrace.tokens.tokenizer import CONFIGS, TOKENIZER_FILES, Vocabulary, load_tokenizer

CONFIG, TOKENIZER = "config.json", TOKENIZER_FILES[0]
PATTERNS = (CONFIG, WEIGHTS, "model-*-of-*.safetensors", INDEX, *TOKENIZER_FILES, "README.md", "LICENSE*")
FACTS_OF_CARD = ("license", "license_name", "license_link", "language", "datasets", "base_model")
PICKLED = "pytorch_model*.bin"  # loading this format can execute arbitrary code
# By model_type: WordPiece's tokens, one per line; byte-level BPE's tokens with their ids, and its merges.
VOCABULARIES = {"bert": ("vocab.txt",), "roberta": ("vocab.json", "merges.txt")}
ADDED = "added_tokens.json"
CASED = 0.01  # share of tokens with a capital letter above which a vocabulary may be cased


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
        for path in filter(Path.is_file, sorted(source.glob(pattern))):
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
    """Write the tokenizer's padding token into a config without one, and into that of a causal model.

    A causal classifier reads the last token that is not the config's padding, so a different one there, such as the 0
    of early Llamas whose tokenizer has no padding token, would make it read the padding. RoBERTa's positions are
    numbered from the config's padding id.
    """
    config = read_object(folder / CONFIG)
    is_causal = constants_of(config["model_type"])["OBJECTIVE"] == "causal"
    if is_causal or config.get("pad_token_id") is None:
        padding = Vocabulary.of(load_tokenizer(folder)).pad
        write_json(folder / CONFIG, {**config, "pad_token_id": padding})


def check_model(folder: Path, name: str, family: str, key: str) -> None:
    """Raise InputError unless `folder` holds a model of the family that is set at `key`, and a tokenizer.

    Messages call the model `name`.
    """
    if not (folder / CONFIG).is_file():
        raise InputError(f"{name}: there is no {CONFIG} in it")
    found = read_object(folder / CONFIG).get("model_type")
    require_one_of(plugin_names(FAMILIES), found, "model_type", name)
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

    config = read_config(path.parent)
    if hasattr(config, "quantization_config"):
        raise InputError(f"{path}: quantization_config is not allowed; weights are read as they were trained")
    positions = str(getattr(config, "position_embedding_type", "absolute"))
    if positions.startswith("relative"):  # transformers 5 has none, and would silently ignore their weights
        raise InputError(f"{path}: position_embedding_type: {positions} is not allowed; expected absolute")
    try:
        with torch.device("meta"):
            # A config may name an attention to fetch from the hub; this one overrides it.
            AutoModel.from_config(config, attn_implementation="eager")
    except Exception as error:  # of any kind, depending on the key
        raise InputError(f"{path}: no model can be made of it: {one_line(error)}") from None


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
        if not any(fnmatch(part, pattern) for pattern in PATTERNS):
            raise InputError(f"{name}: {INDEX}: {part!r} is not allowed; expected {PATTERNS[2]}")
        require_whole(folder / part)


def check_vocabulary(folder: Path, name: str) -> None:
    """Raise InputError unless the model has an embedding for every token of its tokenizer."""
    tokenizer, embedded = load_tokenizer(folder), read_object(folder / CONFIG).get("vocab_size", 0)
    tokens = max(tokenizer.size, 1 + max(tokenizer.encode("a", "a").ids))  # formats may insert other ids
    if tokens > embedded:
        raise InputError(f"{name}: the tokenizer has {tokens} tokens, but the model only {embedded} embeddings")


def facts(origin: Pin | PinnedFolder, folder: Path) -> dict[str, Any]:
    """The model's origin, and from its card the licence, languages, data sets and base model."""
    pin = origin if isinstance(origin, Pin) else None
    try:
        card = metadata_load(folder / "README.md") or {}
    except Exception:  # of any kind, depending on the YAML
        card = {}
    source = {"from": str(origin), "repository": pin and pin.repository, "commit": pin and pin.commit}
    return source | {key: card[key] for key in card if key in FACTS_OF_CARD and is_text(card[key])}


def make_tokenizer(folder: Path, name: str, model_type: str) -> None:
    """Write tokenizer.json as transformers makes it from the vocabulary in `folder`; messages call the model `name`.

    Raises InputError if the files do not determine the tokenizer, or its tokens are not those of the vocabulary.
    """
    from transformers import AutoTokenizer  # imported here, as it takes seconds

    vocabulary, files = _vocabulary(folder, name, model_type), " and ".join(VOCABULARIES[model_type])
    if model_type == "bert":
        _require_case(folder, name, vocabulary)
    try:
        theirs = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        theirs.backend_tokenizer.save(str(folder / TOKENIZER))
    except Exception as error:  # of any kind, depending on the files
        raise InputError(f"{name}: no tokenizer can be made from its {files}: {first_line(error)}") from error
    made = load_tokenizer(folder).get_vocab()
    strange = sorted({token for token, _ in made.items() ^ vocabulary.items()})
    if strange:
        raise InputError(f"{name}: its tokenizer and its {files} differ in the token {strange[0]!r}")


def _vocabulary(folder: Path, name: str, model_type: str) -> dict[str, int]:
    """Ids by token; raises InputError, calling the model `name`, if its vocab.txt is not UTF-8."""
    path = folder / VOCABULARIES[model_type][0]
    if model_type == "bert":
        try:
            with path.open(encoding="utf-8") as lines:
                found = {line.rstrip("\n"): number for number, line in enumerate(lines)}
        except UnicodeDecodeError:
            raise InputError(f"{name}: {path.name} is not UTF-8") from None
    else:
        found = read_object(path)
    return found | (read_object(folder / ADDED) if (folder / ADDED).is_file() else {})


def _require_case(folder: Path, name: str, vocabulary: dict[str, int]) -> None:
    """Raise InputError unless it is certain whether the tokenizer should lower-case text, as it does by default.

    If the config does not say, the vocabulary tells: one that was trained on lower-cased text has no capitals.
    """
    config = read_object(folder / CONFIGS[0]) if (folder / CONFIGS[0]).is_file() else {}
    if config.get("do_basic_tokenize") is False:
        raise InputError(f"{name}: {CONFIGS[0]}: do_basic_tokenize: false is not allowed, without tokenizer.json")
    words = [token for token in vocabulary if not (token.startswith("[") and token.endswith("]"))]
    capitals = sum(token != token.lower() for token in words)
    if "do_lower_case" not in config and capitals > CASED * len(words):
        raise InputError(
            f"{name}: {capitals} of {len(words)} tokens of vocab.txt have capital letters, and no {CONFIGS[0]} sets "
            'do_lower_case; start from a copy of the model with {"do_lower_case": false}, or true, in that file'
        )
