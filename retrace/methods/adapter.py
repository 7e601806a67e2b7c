"""Adapters (Houlsby et al. 2019): two small bottlenecks a layer are trained, the rest of the body is frozen.

The paper trains the layers' norms as well; here they stay as pretrained.
"""

from collections.abc import Sequence
from pathlib import Path

import torch
from peft import LoraConfig, inject_adapter_in_model
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel

from retrace.core.errors import InputError
from retrace.core.settings import Count
from retrace.finetuning.settings import MethodSettings
from retrace.finetuning.trained_part import is_new
from retrace.models.heads import Head, read_model, sublayer_outputs, token_embeddings

SPREAD = 1e-2  # standard deviation of the first weights, cut at two of them: section 3.6 of the paper


class Settings(MethodSettings):
    """The size of the bottlenecks."""

    reduction: Count = Field(default=16, description="hidden size over bottleneck")
    embedding_rank: Count | None = Field(
        default=None, description="of a product as LoRA's beside the token embeddings; null: none, as in the paper"
    )


class Bottleneck(nn.Module):
    """Down, swish, up, and the input added: at the start almost the identity."""

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
    """A matrix of the body with a bottleneck behind it."""

    def __init__(self, matrix: nn.Linear, reduction: int) -> None:
        super().__init__()
        self.matrix, self.adapter = matrix, Bottleneck(matrix.out_features, reduction)

    def forward(self, hidden: Tensor) -> Tensor:
        """(…, in) → (…, C)."""
        return self.adapter(self.matrix(hidden))


def start(
    head: Head, pretrained: Path, seed: int, attention: str, settings: Settings, classes: Sequence[str] = ()
) -> PreTrainedModel:
    """The pretrained body, frozen, with bottlenecks behind attention and feed-forward.

    They are new, and so is the head unless it is a language model's, which is frozen too.
    """
    model = read_model(head, pretrained, seed, attention, classes)
    tune(model, head, seed, settings)
    return model


def tune(model: PreTrainedModel, head: Head, seed: int, settings: Settings) -> None:
    """Freeze what is not new and put bottlenecks into the body.

    Raises InputError where a language model's embeddings are to get a product: its head may share their weights.
    """
    torch.manual_seed(seed)
    if settings.embedding_rank is not None:
        _widen_embeddings(model, head, settings.embedding_rank)
    for name, weight in model.named_parameters():
        weight.requires_grad_("lora_" in name or is_new(model, head, name))
    for name in sublayer_outputs(model):
        above, _, last = name.rpartition(".")
        matrix = model.get_submodule(name)
        if not isinstance(matrix, nn.Linear):
            raise TypeError(f"{name} is no matrix")
        setattr(model.get_submodule(above), last, Adapted(matrix, settings.reduction))


def _widen_embeddings(model: PreTrainedModel, head: Head, rank: int) -> None:
    if head == "language_model":
        raise InputError(f"params.yaml: methods: embedding_rank: {rank} is not allowed with squad.answers: generative")
    inject_adapter_in_model(LoraConfig(r=rank, lora_alpha=rank, target_modules=[token_embeddings(model)]), model)
