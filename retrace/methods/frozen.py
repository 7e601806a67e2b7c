"""Only the head is trained, on a frozen pretrained body."""

from typing import cast

from torch import nn
from transformers import PreTrainedModel

from retrace.finetuning.settings import MethodSettings
from retrace.models.heads import Head, in_body

Settings = MethodSettings


def tune(model: PreTrainedModel, head: Head, settings: MethodSettings) -> None:
    """Freeze the body.

    A language model's head is pretrained. Where it shares its weights with the token embeddings, it gets a copy of
    them, so that the body stays frozen.
    """
    output = model.get_output_embeddings() if head == "language_model" else None
    if output is not None and output.weight is cast(nn.Embedding, model.get_input_embeddings()).weight:
        output.weight = nn.Parameter(output.weight.detach().clone())
        model.config.tie_word_embeddings = False
    for name, weight in model.named_parameters():
        weight.requires_grad_(not in_body(model, name))
