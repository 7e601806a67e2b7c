"""Adapters (Houlsby et al. 2019): two small bottlenecks per layer are trained, the rest of the body is frozen.

The paper trains the layer norms as well; here they stay frozen.
"""

import torch
from peft import LoraConfig, inject_adapter_in_model
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel

from retrace.core.errors import InputError
from retrace.core.settings import Count
from retrace.finetuning.method import is_new
from retrace.finetuning.settings import MethodSettings
from retrace.models.heads import Head, sublayer_outputs, token_embeddings

SPREAD = 1e-2  # standard deviation of the initial weights, truncated at two of them: section 3.6 of the paper


class Settings(MethodSettings):
    """The size of the bottlenecks."""

    reduction: Count = Field(default=16, description="hidden size over bottleneck")
    embedding_rank: Count | None = Field(
        default=None, description="of a product as LoRA's beside the token embeddings; null: none, as in the paper"
    )


class Bottleneck(nn.Module):
    """Down-projection, swish, up-projection and a skip connection: almost the identity at first."""

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


def tune(model: PreTrainedModel, head: Head, settings: Settings) -> None:
    """Freeze what was pretrained and put a bottleneck behind the attention and the feed-forward part of each layer.

    Raises InputError for `embedding_rank` with a language model, whose head may share the embeddings' weights.
    """
    torch.manual_seed(torch.initial_seed())  # the same bottlenecks for a seed, however large the head drawn before
    if settings.embedding_rank is not None:
        _widen_embeddings(model, head, settings.embedding_rank)
    for name, weight in model.named_parameters():
        weight.requires_grad_("lora_" in name or is_new(model, head, name))
    for name in sublayer_outputs(model):
        above, _, last = name.rpartition(".")
        matrix = model.get_submodule(name)
        if not isinstance(matrix, nn.Linear):
            raise TypeError(f"{name} is no linear layer")
        setattr(model.get_submodule(above), last, Adapted(matrix, settings.reduction))


def _widen_embeddings(model: PreTrainedModel, head: Head, rank: int) -> None:
    if head == "language_model":
        raise InputError(f"params.yaml: methods: embedding_rank: {rank} is not allowed with squad.answers: generative")
    inject_adapter_in_model(LoraConfig(r=rank, lora_alpha=rank, target_modules=[token_embeddings(model)]), model)
