"""A checkpoint to start from: `model` in params.yaml → data/model, or `checkpoints.<name>` → data/checkpoints/<name>.

From the Hugging Face Hub or from a folder; config, weights as safetensors and tokenizer, checked; a tokenizer.json that
is missing is made from the vocabulary. source.json says where it is from. With a `random_seed` the weights are
drawn anew. Where `model.checkpoint` is null, training starts from random weights and there is only source.json, which
says so.

    python -m stages.sources.model [--name NAME]
"""

import argparse
import shlex
import shutil
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from huggingface_hub.repocard import metadata_load
from yaml import YAMLError

from retrace.core.errors import InputError, exit_cleanly
from retrace.core.files import atomic_folder, read_object, write_json
from retrace.core.guard import guarded
from retrace.core.paths import CHECKPOINT, FACTS, named_checkpoint
from retrace.core.registry import plugin_names
from retrace.core.settings import read_params
from retrace.core.weights import FILE as WEIGHTS
from retrace.core.weights import INDEX, weight_files
from retrace.hub.checkpoint import (
    CheckpointParams,
    InitialCheckpoint,
    ModelParams,
    Pin,
    PinnedFolder,
    read_initial_checkpoint,
)
from retrace.hub.repository import fetch, listing
from retrace.tokens.bare_vocabulary import VOCABULARIES, make_tokenizer
from retrace.tokens.tokenizer import TOKENIZER_FILES, Vocabulary, load_tokenizer

CONFIG = "config.json"
PATTERNS = (CONFIG, WEIGHTS, "model-*-of-*.safetensors", INDEX, *TOKENIZER_FILES, "README.md", "LICENSE*")
FACTS_OF_CARD = ("license", "license_name", "license_link", "language", "datasets", "base_model")
FAMILIES = "retrace.families"
PICKLED = "pytorch_model*.bin"  # weights in a format that can run any program as it is read
# Puts them, one file or several, into one of tensors alone; tied ones twice, as names count here.
CONVERT = (
    "import torch, safetensors.torch as s; from pathlib import Path; w = {}; "
    f"[w.update(torch.load(f, map_location='cpu', weights_only=True)) for f in Path('converted').glob('{PICKLED}')]; "
    f"s.save_file({{n: t.clone().contiguous() for n, t in w.items()}}, 'converted/{WEIGHTS}', {{'format': 'pt'}})"
)


def main() -> None:
    name = read_name()
    params = read_params()
    start = read_initial_checkpoint(params, name)
    origin = start.origin
    settings = (ModelParams.read(params) if name is None else CheckpointParams.read(params, key=name)).settings
    read = [origin.path] if isinstance(origin, PinnedFolder) else []
    target, lock = (CHECKPOINT, "model") if name is None else (named_checkpoint(name), f"model-{name}")
    with guarded(lock, read, settings), atomic_folder(target) as folder:
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
    """The entry under `checkpoints` that the command line names."""
    parser = argparse.ArgumentParser(description="Fetch a model to start from.")
    parser.add_argument("--name", help="an entry under checkpoints in data/params.yaml; model of params.yaml if absent")
    return parser.parse_args().name


def fill(folder: Path, start: InitialCheckpoint, origin: Pin | PinnedFolder) -> None:
    """Copy the files of the model and say where they are from.

    Raises InputError where they are not those of a model of its family.
    """
    if isinstance(origin, Pin):
        source, called = fetch(origin, "model", PATTERNS), origin.repository
    else:
        source, called = origin.path, str(origin.path)
    check(source, called, start.family)
    check_weights(source, called, origin)
    for pattern in PATTERNS:
        for path in sorted(source.glob(pattern)):
            shutil.copyfile(path, folder / path.name)
    if not (folder / TOKENIZER_FILES[0]).is_file():
        make_tokenizer(folder, called, start.family)
        print(f"{TOKENIZER_FILES[0]} is made of its {' and '.join(VOCABULARIES[start.family])}")
    check_vocabulary(folder, called)
    if start.seed is not None:
        draw_weights(folder, start.seed)
    write_json(folder / FACTS, facts(origin, source) | ({} if start.seed is None else {"random": start.seed}))


def draw_weights(folder: Path, seed: int) -> None:
    """Put random weights in place of those of the model saved in `folder`."""
    from retrace.models.heads import make_model, pretraining_head, read_config  # here, for it takes seconds to import

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
    """Raise an InputError that calls the model `name` unless `folder` holds one of the family, and a tokenizer."""
    if not (folder / CONFIG).is_file():
        raise InputError(f"{name}: there is no {CONFIG} in it")
    found = read_object(folder / CONFIG).get("model_type")
    families = plugin_names(FAMILIES)
    if found not in families:
        raise InputError(f"{name}: model_type: {found!r} is not allowed; expected one of {', '.join(families)}")
    if found != family:
        raise InputError(f"params.yaml: family: {family} is not allowed; {name} is a {found}")
    bare = VOCABULARIES.get(family, ())
    if not (folder / TOKENIZER_FILES[0]).is_file() and not (bare and all((folder / file).is_file() for file in bare)):
        otherwise = f", nor {' and '.join(bare)} to make one of" if bare else ""
        raise InputError(f"{name}: there is no {TOKENIZER_FILES[0]} in it{otherwise}")


def check_weights(folder: Path, name: str, origin: Pin | PinnedFolder) -> None:
    """Raise an InputError that calls the model `name` unless `folder` holds all its weights, as safetensors."""
    missing = [part for part in weight_files(folder) if not (folder / part).is_file()]
    if not missing:
        return
    hub = isinstance(origin, Pin)
    there = listing(origin, "model") if hub else [path.name for path in folder.iterdir()]
    said = f"{name}: there is no {missing[0]} in it; weights are read from safetensors only"
    if missing == [WEIGHTS] and any(fnmatch(file, PICKLED) for file in there):
        said += f"; its {PICKLED} is converted so, in a throw-away environment: {conversion(origin)}"
    raise InputError(said)


def conversion(origin: Pin | PinnedFolder) -> str:
    """The commands that put pickled weights into safetensors, in a copy of the model called `converted`."""
    if isinstance(origin, Pin):
        copied = f"converting/bin/hf download {origin.repository} --revision {origin.commit} --local-dir converted"
    else:
        copied = f"cp -r {shlex.quote(str(origin.path))} converted"
    return (
        "python -m venv converting && converting/bin/pip install torch numpy safetensors huggingface_hub && "
        f'{copied} && converting/bin/python -c "{CONVERT}" && rm -r converting converted/{PICKLED}; '
        "then start from converted@digest"
    )


def check_vocabulary(folder: Path, name: str) -> None:
    """Raise an InputError that calls the model `name` unless it knows every token of the tokenizer in `folder`."""
    tokens, embedded = load_tokenizer(folder).size, read_object(folder / CONFIG).get("vocab_size", 0)
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
