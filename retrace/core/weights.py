"""Names and sizes of a saved model's parameters, read from the files' headers without loading the weights."""

import math
from collections import Counter
from pathlib import Path

from safetensors import SafetensorError, safe_open

from retrace.core.errors import InputError
from retrace.core.files import read_object, require_file

FILE = "model.safetensors"
INDEX = "model.safetensors.index.json"  # where the weights are in several files


def parameters_by_module(folder: Path) -> dict[str, int]:
    """The number of parameters of each module of the model saved in `folder`; each layer is one module.

    Buffers of whole numbers, such as the numbers of positions, are not counted. Tied weights count as often as they
    are saved, which is once if transformers wrote the file. Raises InputError if a file of weights is missing.
    """
    counts: Counter[str] = Counter()
    for path in (folder / name for name in weight_files(folder)):
        require_file(path)
        with safe_open(path, framework="numpy") as weights:
            for name in weights.keys():  # noqa: SIM118 - not a dict
                weight = weights.get_slice(name)
                if "F" in weight.get_dtype():  # F32, BF16, F8_E4M3, but not I64 or BOOL
                    counts[module_of(name)] += math.prod(weight.get_shape())
    return dict(counts)


def weight_files(folder: Path) -> list[str]:
    """The names of the model's weight files in `folder`, whether or not they exist.

    Raises InputError if an index lists no files, or files outside the folder.
    """
    index = folder / INDEX
    if not index.is_file():
        return [FILE]
    found = read_object(index).get("weight_map")
    if not isinstance(found, dict) or not found:
        raise InputError(f"{index}: no weight_map")
    for name in found.values():
        if not isinstance(name, str) or Path(name).name != name:
            raise InputError(f"{index}: weight_map: {name!r} is not allowed; expected files beside it")
    return sorted({*found.values()})


def require_whole(path: Path) -> None:
    """Raise InputError if a file is not safetensors or is cut short; only its header is read."""
    try:
        with safe_open(path, framework="numpy"):
            return
    except SafetensorError as error:
        raise InputError(f"{path}: not safetensors: {error}") from None


def module_of(name: str) -> str:
    """The module that a parameter belongs to.

    model.layers.0.attn.Wqkv.weight → model.layers.0; model.embeddings.norm.weight → model.embeddings.
    """
    parts = name.split(".")
    for position, part in enumerate(parts):
        if part.isdigit():
            return ".".join(parts[: position + 1])
    return ".".join(parts[:2]) if len(parts) > 2 else parts[0]
