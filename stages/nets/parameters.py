"""How many parameters a saved model has, by module, read from the file's header without loading it."""

import math
from pathlib import Path

from safetensors import safe_open

from stages.harness.errors import InputError

FILE = "model.safetensors"


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


def module_of(name: str) -> str:
    """The module in whose row a parameter counts.

    model.layers.0.attn.Wqkv.weight → model.layers.0; model.embeddings.norm.weight → model.embeddings.
    """
    parts = name.split(".")
    for position, part in enumerate(parts):
        if part.isdigit():
            return ".".join(parts[: position + 1])
    return ".".join(parts[:2]) if len(parts) > 2 else parts[0]
