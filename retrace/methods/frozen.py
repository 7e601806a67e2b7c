"""Only the head is trained, on a frozen pretrained body, which has no dropout as it cannot overfit."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from retrace.finetuning.settings import MethodSettings

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from retrace.models.heads import Head

Settings = MethodSettings


def tune(model: PreTrainedModel, head: Head, settings: MethodSettings) -> None:
    """Freeze the body.

    A language model's head is pretrained. If it shares the token embeddings' weights, it gets a copy of them, so that
    the body stays frozen.
    """
    from torch import nn

    from retrace.models.heads import in_body

    output = model.get_output_embeddings() if head == "language_model" else None
    if output is not None and output.weight is cast(nn.Embedding, model.get_input_embeddings()).weight:
        output.weight = nn.Parameter(output.weight.detach().clone())
        model.config.tie_word_embeddings = False
    for name, weight in model.named_parameters():
        weight.requires_grad_(not in_body(model, name))
