"""A fine-tuning method, an entry under `methods` in params.yaml: the checkpoint it starts from and what it trains."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel

from retrace.core.errors import InputError
from retrace.core.paths import named_checkpoint
from retrace.finetuning.settings import MethodSettings, method_settings
from retrace.models.heads import Head, in_body, make_model, read_config, read_model, set_dropout

PRETRAINED = Path("models/pretrained")
FILE = "trained.safetensors"  # the weights that a method trains, where these are not all
SPREAD = 1e-2  # standard deviation of an adapter's initial weights, truncated at two of them: section 3.6 of its paper


@dataclass(frozen=True)
class Method:
    """A fine-tuning method and the checkpoint it starts from."""

    tuning: ModuleType  # of retrace/methods
    settings: MethodSettings

    @property
    def base(self) -> Path:
        """The folder of the model that it starts from."""
        return PRETRAINED if self.settings.checkpoint is None else named_checkpoint(self.settings.checkpoint)

    @property
    def file(self) -> str:
        """The name of the tuning."""
        return self.tuning.__name__.rpartition(".")[2]

    def tune(self, model: PreTrainedModel, head: Head) -> None:
        """Choose the weights to train and add those of the method; without a `tune` it trains all there are."""
        if hasattr(self.tuning, "tune"):
            self.tuning.tune(model, head, self.settings)

    def start(
        self, head: Head, folder: Path, seed: int, attention: str, classes: Sequence[str] = (),
        dropout: float | None = None,
    ) -> PreTrainedModel:  # fmt: skip
        """The model to train: the checkpoint in `folder`, or random weights, under a head drawn from `seed`.

        `dropout` is that of the checkpoint's layers, not of what the method adds.
        """
        if getattr(self.tuning, "FROM_RANDOM", False):
            model = make_model(head, read_config(folder), seed, attention, classes)
        else:
            model = read_model(head, folder, seed, attention, classes)
        if dropout is not None:
            set_dropout(model, dropout)
        self.tune(model, head)
        return model


def read_method(params: Mapping[str, Any], label: str, task: str | None = None) -> Method:
    """The method as params.yaml sets it, for a task where one is given, or as by default where params.yaml is silent.

    Raises InputError where its settings are wrong or no file of retrace/methods has its name.
    """
    return Method(*method_settings(params, label, task))


def is_new(model: PreTrainedModel, head: Head, name: str) -> bool:
    """Whether a weight was not pretrained: a head's, except a language model's."""
    return head != "language_model" and not in_body(model, name)


def is_part(model: nn.Module) -> bool:
    """Whether some weights are not trained."""
    return not all(weight.requires_grad for weight in model.parameters())


def round_frozen(model: PreTrainedModel) -> None:
    """Store the body's frozen matrices in bf16, to which autocast would round them for every batch.

    Only what is trained is saved, so nothing saved is rounded. Embeddings and norms stay: autocast does not round them.
    """
    for module in cast(nn.Module, model.base_model).modules():
        if isinstance(module, nn.Linear) and not any(weight.requires_grad for weight in module.parameters()):
            module.to(torch.bfloat16)


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


class Bottleneck(nn.Module):
    """An adapter (Houlsby et al. 2019): down-projection, swish, up-projection and a skip connection.

    It is almost the identity at first.
    """

    def __init__(self, size: int, reduction: int) -> None:
        super().__init__()
        narrow = max(1, size // reduction)
        self.down, self.up = nn.Linear(size, narrow), nn.Linear(narrow, size)
        for layer in (self.down, self.up):
            nn.init.trunc_normal_(layer.weight, std=SPREAD, a=-2 * SPREAD, b=2 * SPREAD)
            nn.init.zeros_(layer.bias)

    def forward(self, hidden: Tensor) -> Tensor:
        """(…, C) → (…, C)."""
        return hidden + self.up(functional.silu(self.down(hidden)))


class Adapted(nn.Module):
    """A linear layer of the body with a bottleneck behind it."""

    def __init__(self, matrix: nn.Linear, reduction: int) -> None:
        super().__init__()
        self.matrix, self.adapter = matrix, Bottleneck(matrix.out_features, reduction)

    def forward(self, hidden: Tensor) -> Tensor:
        """(…, in) → (…, C)."""
        return self.adapter(self.matrix(hidden))
