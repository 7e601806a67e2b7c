"""Which weights a method trains, and saving only those."""

from collections.abc import Mapping
from pathlib import Path

from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import PreTrainedModel

from retrace.core.errors import InputError
from retrace.models.heads import Head, in_body

FILE = "trained.safetensors"


def is_new(model: PreTrainedModel, head: Head, name: str) -> bool:
    """Whether a weight was not pretrained: a head's, except a language model's."""
    return head != "language_model" and not in_body(model, name)


def is_part(model: nn.Module) -> bool:
    """Whether some weights are not trained."""
    return not all(weight.requires_grad for weight in model.parameters())


def save_trained(model: nn.Module, weights: Mapping[str, Tensor], folder: Path) -> None:
    """Write only those of the `weights`, by name, that the model trains."""
    names = [name for name, weight in model.named_parameters() if weight.requires_grad]
    save_file({name: weights[name].cpu().contiguous() for name in names}, folder / FILE)


def load_trained(model: nn.Module, folder: Path) -> None:
    """Load the weights that `save_trained` wrote into a model tuned by the same method.

    Raises InputError where the file is missing or holds other weights than this model trains.
    """
    if not (folder / FILE).is_file():
        raise InputError(f"{folder / FILE}: no such file")
    saved = load_file(folder / FILE)
    wanted = {name: weight.shape for name, weight in model.named_parameters() if weight.requires_grad}
    if wanted != {name: weight.shape for name, weight in saved.items()}:
        raise InputError(f"{folder / FILE}: the weights do not match this method and model")
    model.load_state_dict(saved, strict=False)
