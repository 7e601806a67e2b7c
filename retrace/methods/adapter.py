"""Adapters (Houlsby et al. 2019): two small bottlenecks per layer are trained, the rest of the body is frozen.

The paper also trains the layer norms; here they stay frozen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pydantic import Field

from retrace.core.errors import InputError
from retrace.core.settings import Count, Size
from retrace.finetuning.settings import MethodSettings

if TYPE_CHECKING:  # torch and peft are imported where they are used, as `retrace check` reads the settings only
    from torch import nn
    from transformers import PreTrainedModel

    from retrace.models.heads import Head


class Settings(MethodSettings):
    """The size of the bottlenecks."""

    reduction: Count = Field(default=16, description="hidden size divided by bottleneck size")
    embedding_rank: Size | None = Field(
        default=None, description="rank of a LoRA update of the token embeddings; null: none, as in the paper"
    )


def tune(model: PreTrainedModel, head: Head, settings: Settings) -> None:
    """Freeze what was pretrained and put a bottleneck behind the attention and the feed-forward part of each layer.

    Raises InputError for `embedding_rank` with a language model, whose head may share the embeddings' weights.
    """
    import torch

    from retrace.finetuning.method import Adapted, freeze_pretrained
    from retrace.models.heads import layer_matrices, token_embeddings

    torch.manual_seed(torch.initial_seed())  # so that the bottlenecks do not depend on the size of the head
    rank = settings.embedding_rank
    if rank is not None:
        from peft import LoraConfig, inject_adapter_in_model

        if head == "language_model":
            raise InputError(f"embedding_rank: {rank} is not allowed with answers: generative")
        inject_adapter_in_model(LoraConfig(r=rank, lora_alpha=rank, target_modules=[token_embeddings(model)]), model)
    freeze_pretrained(model, head)
    for name in layer_matrices(model, "OUTPUTS"):
        matrix = cast("nn.Linear", model.get_submodule(name))
        model.set_submodule(name, Adapted(matrix, settings.reduction))
