"""A fine-tuning method, an entry under `methods` in params.yaml: the checkpoint it starts from and what it trains."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel

from retrace.core.errors import InputError
from retrace.core.files import require_file
from retrace.core.paths import PRETRAINED, named_checkpoint
from retrace.core.settings import plugin_file, plugin_names
from retrace.finetuning.settings import METHODS, MethodSettings, method_entries, method_settings
from retrace.models.heads import Head, in_body, make_model, read_config, read_model, set_dropout

FILE = "trained.safetensors"  # the trained weights, if a method freezes or adds some
SPREAD = 1e-2  # standard deviation of an adapter's initial weights, truncated at twice that (section 3.6 of the paper)


@dataclass(frozen=True)
class Method:
    """A fine-tuning method and the checkpoint it starts from."""

    tuning: ModuleType  # of retrace/methods
    settings: MethodSettings
    place: str = field(compare=False)  # where the settings were read: the file and the key
    task: str | None = field(default=None, compare=False)  # the task that the settings are for; None: no single one

    @property
    def base(self) -> Path:
        """The folder of the model that it starts from."""
        return PRETRAINED if self.settings.checkpoint is None else named_checkpoint(self.settings.checkpoint)

    @property
    def file(self) -> str:
        """The name of the file in retrace/methods."""
        return self.tuning.__name__.rpartition(".")[2]

    @property
    def is_random(self) -> bool:
        """Whether it starts from random weights, as `FROM_RANDOM` in its file says."""
        return getattr(self.tuning, "FROM_RANDOM", False)

    def tune(self, model: PreTrainedModel, head: Head, dropout: float | None = None) -> None:
        """Choose the weights to train and add those of the method.

        `dropout` is the rate of the model's own dropout layers, not of those that the method adds. Raises InputError if
        the model has none, if no weight is left to train or if a setting does not suit the model.
        """
        if dropout is not None:
            set_dropout(model, dropout, "dropout" if self.task is None else f"{self.task}.dropout")
        try:
            self.tuning.tune(model, head, self.settings)
        except InputError as error:
            raise InputError(f"{self.place}.{error}") from None
        if not any(weight.requires_grad for weight in model.parameters()):
            raise InputError(f"{plugin_file(METHODS, self.file)}: tune leaves no weight to train")

    def start(
        self, head: Head, folder: Path, seed: int, attention: str, classes: Sequence[str] = (),
        dropout: float | None = None,
    ) -> PreTrainedModel:  # fmt: skip
        """The model to train: the checkpoint in `folder`, or random weights, with a head drawn from `seed`.

        A language model's head is read too. Raises InputError if `folder` has no checkpoint, or this head is missing,
        and as `tune` does, which gets `dropout`.
        """
        if self.is_random:
            model = make_model(head, read_config(folder), seed, attention, classes)
        else:
            model = read_model(head, folder, seed, attention, classes, needs_head=head == "language_model")
        self.tune(model, head, dropout)
        return model


def read_method(params: Mapping[str, Any], label: str, task: str | None = None) -> Method:
    """The method as set in params.yaml, for a task if one is given; with default settings if it has no entry.

    Raises InputError if its settings are wrong or no file of retrace/methods has its name.
    """
    return Method(*method_settings(params, label, task), f"params.yaml: methods.{label}", task)


def method_names(params: Mapping[str, Any]) -> list[str]:
    """The methods in params.yaml, and the files of retrace/methods, which need no settings.

    Raises InputError if `methods` is not a mapping.
    """
    return sorted({*plugin_names(METHODS), *method_entries(params)})


def freeze_pretrained(model: PreTrainedModel, head: Head) -> None:
    """Train only LoRA's weights and a new head; a language model's head is pretrained."""
    for name, weight in model.named_parameters():
        is_new = head != "language_model" and not in_body(model, name)
        weight.requires_grad_("lora_" in name or is_new)


def has_frozen(model: nn.Module) -> bool:
    """Whether some weights are frozen."""
    return not all(weight.requires_grad for weight in model.parameters())


def has_added(model: nn.Module) -> bool:
    """Whether a transformers model has weights that its class does not make, so that transformers could not read it."""
    with torch.device("meta"):
        plain = type(model)(model.config)
    return plain.state_dict().keys() != model.state_dict().keys()


def round_frozen(model: PreTrainedModel) -> None:
    """Store the body's frozen matrices in bf16, to which autocast would round them for every batch.

    Only trained weights are saved, so nothing saved is rounded. Autocast does not round embeddings and norms.
    """
    for module in cast(nn.Module, model.base_model).modules():
        if isinstance(module, nn.Linear) and not any(weight.requires_grad for weight in module.parameters()):
            module.to(torch.bfloat16)


def save_trained(weights: Mapping[str, Tensor], folder: Path) -> None:
    """Write the trained weights, by name."""
    save_file({name: weight.cpu().contiguous() for name, weight in weights.items()}, folder / FILE)


def load_trained(model: nn.Module, folder: Path) -> None:
    """Load the weights that `save_trained` wrote into a model tuned by the same method.

    Raises InputError if the file is missing or has other weights than this model trains.
    """
    require_file(folder / FILE)
    saved = load_file(folder / FILE)
    wanted = {name: weight.shape for name, weight in model.named_parameters() if weight.requires_grad}
    if wanted != {name: weight.shape for name, weight in saved.items()}:
        raise InputError(f"{folder / FILE}: the weights do not match this method and model")
    model.load_state_dict(saved, strict=False)


class Adapted(nn.Module):
    """A linear layer of the body with an adapter behind it (Houlsby et al. 2019).

    An adapter is a down-projection, swish, an up-projection and a skip connection. Initially it is almost the identity.
    """

    def __init__(self, matrix: nn.Linear, reduction: int) -> None:
        super().__init__()
        size = matrix.out_features
        narrow = max(1, size // reduction)
        down, up = nn.Linear(size, narrow), nn.Linear(narrow, size)
        for layer in (down, up):
            nn.init.trunc_normal_(layer.weight, std=SPREAD, a=-2 * SPREAD, b=2 * SPREAD)
            nn.init.zeros_(layer.bias)
        self.matrix, self.adapter = matrix, nn.ModuleDict({"down": down, "up": up})

    def forward(self, hidden: Tensor) -> Tensor:
        """(…, in) → (…, C)."""
        hidden = self.matrix(hidden)
        return hidden + self.adapter["up"](functional.silu(self.adapter["down"](hidden)))
