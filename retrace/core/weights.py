"""How many parameters a saved model has, by module, read from the file's header without loading it."""

import math
from pathlib import Path

from safetensors import safe_open

from retrace.core.errors import InputError
from retrace.core.files import read_object

FILE = "model.safetensors"
INDEX = "model.safetensors.index.json"  # where the weights are in several files


def parameters_by_module(folder: Path) -> dict[str, int]:
    """Parameters of the modules of the model saved in `folder`, layers each on their own.

    Tied weights are saved, and so counted, once. Raises InputError where there are no weights.
    """
    path = folder / FILE
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    counts: dict[str, int] = {}
    with safe_open(path, framework="numpy") as weights:
        for name in weights.keys():  # noqa: SIM118 - not a dict
            module = module_of(name)
            counts[module] = counts.get(module, 0) + math.prod(weights.get_slice(name).get_shape())
    return counts


def weight_files(folder: Path) -> list[str]:
    """The names of the files of the weights of the model saved in `folder`, whether or not they are there."""
    index = folder / INDEX
    return sorted({*_weight_map(index).values()}) if index.is_file() else [FILE]


def weight_names(folder: Path) -> list[str]:
    """The names of the weights of the model saved in `folder`, in one file or in several."""
    if (folder / INDEX).is_file():
        return list(_weight_map(folder / INDEX))
    with safe_open(folder / FILE, framework="numpy") as weights:
        return list(weights.keys())


def _weight_map(index: Path) -> dict[str, str]:
    """The file that each weight is in, by its name."""
    found = read_object(index).get("weight_map")
    if not found:
        raise InputError(f"{index}: no weight_map in it")
    return found


def module_of(name: str) -> str:
    """The module in whose row a parameter counts.

    model.layers.0.attn.Wqkv.weight → model.layers.0; model.embeddings.norm.weight → model.embeddings.
    """
    parts = name.split(".")
    for position, part in enumerate(parts):
        if part.isdigit():
            return ".".join(parts[: position + 1])
    return ".".join(parts[:2]) if len(parts) > 2 else parts[0]
