"""Adapters (Houlsby et al. 2019): two small bottlenecks per layer are trained, the rest of the body is frozen.

The paper trains the layer norms as well; here they stay frozen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from retrace.core.errors import InputError
from retrace.core.settings import Count
from retrace.finetuning.settings import MethodSettings

if TYPE_CHECKING:  # torch and peft are imported where they are used, as `retrace check` reads the settings alone
    from transformers import PreTrainedModel

    from retrace.models.heads import Head


class Settings(MethodSettings):
    """The size of the bottlenecks."""

    reduction: Count = Field(default=16, description="hidden size over bottleneck")
    embedding_rank: Count | None = Field(
        default=None, description="of a product as LoRA's beside the token embeddings; null: none, as in the paper"
    )


def tune(model: PreTrainedModel, head: Head, settings: Settings) -> None:
    """Freeze what was pretrained and put a bottleneck behind the attention and the feed-forward part of each layer.

    Raises InputError for `embedding_rank` with a language model, whose head may share the embeddings' weights.
    """
    import torch
    from torch import nn

    from retrace.finetuning.method import Adapted, is_new
    from retrace.models.heads import layer_matrices

    torch.manual_seed(torch.initial_seed())  # the same bottlenecks for a seed, however large the head drawn before
    if settings.embedding_rank is not None:
        _widen_embeddings(model, head, settings.embedding_rank)
    for name, weight in model.named_parameters():
        weight.requires_grad_("lora_" in name or is_new(model, head, name))
    for name in layer_matrices(model, "OUTPUTS"):
        above, _, last = name.rpartition(".")
        matrix = model.get_submodule(name)
        if not isinstance(matrix, nn.Linear):
            raise TypeError(f"{name} is no linear layer")
        setattr(model.get_submodule(above), last, Adapted(matrix, settings.reduction))


def _widen_embeddings(model: PreTrainedModel, head: Head, rank: int) -> None:
    from peft import LoraConfig, inject_adapter_in_model

    from retrace.models.heads import token_embeddings

    if head == "language_model":
        raise InputError(f"params.yaml: methods: embedding_rank: {rank} is not allowed with answers: generative")
    inject_adapter_in_model(LoraConfig(r=rank, lora_alpha=rank, target_modules=[token_embeddings(model)]), model)
