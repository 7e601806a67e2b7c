"""Tuning a part of a model: which weights are trained, and a folder that holds only those."""

from collections.abc import Mapping
from pathlib import Path
from typing import cast

from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import PreTrainedModel

from retrace.core.errors import InputError
from retrace.models.heads import Head, in_body

FILE = "trained.safetensors"


def freeze_body(model: PreTrainedModel) -> None:
    """Train the head only."""
    for name, weight in model.named_parameters():
        weight.requires_grad_(not in_body(model, name))


def untie_head(model: PreTrainedModel) -> None:
    """Give a language model's head weights of its own where it shares those of the token embeddings."""
    head = cast(nn.Linear, model.get_output_embeddings())
    if head.weight is cast(nn.Embedding, model.get_input_embeddings()).weight:
        head.weight = nn.Parameter(head.weight.detach().clone())
        model.config.tie_word_embeddings = False


def is_new(model: PreTrainedModel, head: Head, name: str) -> bool:
    """Whether a weight was not pretrained: one of the head's, but a language model's was with its body."""
    return head != "language_model" and not in_body(model, name)


def is_part(model: nn.Module) -> bool:
    """Whether some weights are not trained."""
    return not all(weight.requires_grad for weight in model.parameters())


def save_trained(model: nn.Module, weights: Mapping[str, Tensor], folder: Path) -> None:
    """Write those of the `weights`, by name, that the model trains, and no others."""
    names = [name for name, weight in model.named_parameters() if weight.requires_grad]
    save_file({name: weights[name].cpu().contiguous() for name in names}, folder / FILE)


def load_trained(model: nn.Module, folder: Path) -> None:
    """Give a model that was started in the same way the weights that `save_trained` wrote.

    Raises InputError where they are not those that this model trains.
    """
    if not (folder / FILE).is_file():
        raise InputError(f"{folder / FILE}: no such file")
    saved = load_file(folder / FILE)
    wanted = {name: weight.shape for name, weight in model.named_parameters() if weight.requires_grad}
    if wanted != {name: weight.shape for name, weight in saved.items()}:
        raise InputError(f"{folder / FILE}: the weights are not those of a model that was tuned in this way")
    model.load_state_dict(saved, strict=False)
