"""A masked language model whose head sees masked positions only.

The head is a product with the whole vocabulary, at small sizes most of the work; of the positions
that are not masked nobody asks its answer.
"""

from pathlib import Path
from typing import cast

from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel

from stages.harness.plugins import load_plugin
from stages.nets.heads import FAMILIES, make_model, read_model


class MaskedLanguageModel(nn.Module):
    """A transformers model for masked language modelling, asked at chosen positions."""

    def __init__(self, body: PreTrainedModel) -> None:
        super().__init__()
        self.body = body
        self._head = load_plugin(FAMILIES, body.config.model_type, "family").language_head

    def forward(self, ids: Tensor, at: Tensor) -> Tensor:
        """Token ids (B, T) and the N positions asked for (B, T), bool → scores over the vocabulary (N, V)."""
        hidden = cast(nn.Module, self.body.base_model)(input_ids=ids).last_hidden_state  # (B, T, C)
        return self._head(self.body, hidden[at])


def make_language_model(config: PreTrainedConfig, seed: int, attention: str) -> MaskedLanguageModel:
    """A language model with random weights, the same for the same seed."""
    return MaskedLanguageModel(make_model("language_model", config, seed, attention))


def read_language_model(folder: Path, seed: int, attention: str) -> MaskedLanguageModel:
    """The language model saved in `folder`.

    Raises InputError where weights of the body are missing.
    """
    return MaskedLanguageModel(read_model("language_model", folder, seed, attention))
