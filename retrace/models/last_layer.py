"""The last layer of a language model, computed at scored positions only.

Nothing reads its output elsewhere, so beyond keys and values the other positions, of which masked modelling leaves most
unscored, need no work there.
"""

from types import new_class
from typing import Any

import torch
from torch import Tensor, nn
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS


def score_late(body: nn.Module, kind: type[nn.Module]) -> None:
    """Make the last layer of a body one of a `kind` that may be computed at scored positions only, once."""
    *_, last = (module for module in body.modules() if isinstance(module, GradientCheckpointingLayer))
    if not isinstance(last, kind):
        last.__class__ = new_class("LastLayer", (kind, type(last)))


def rows_at(hidden: Tensor, scored: Tensor) -> Tensor:
    """Hidden states (B, T, C) at positions (B, M) of the flattened batch → (B, M, C)."""
    return hidden.flatten(0, 1).index_select(0, scored.flatten()).unflatten(0, scored.shape)


def by_head(states: Tensor, size: int) -> Tensor:
    """States (B, T, C) by head of `size` numbers → (B, H, T, D)."""
    return states.unflatten(-1, (-1, size)).transpose(1, 2)


def attend_at(
    scored: Tensor, module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float,
    dropout: float,
) -> Tensor:  # fmt: skip
    """The config's attention for queries (B, H, M, D) at scored positions → (B, M, C); the mask is (B, 1, T, T)."""
    if mask is not None:
        rows = torch.arange(len(scored), device=scored.device)[:, None]
        mask = mask[rows, 0, scored % key.shape[2]][:, None]
    attention = ALL_ATTENTION_FUNCTIONS[module.config._attn_implementation]
    dropout = dropout if module.training else 0.0
    return attention(module, query, key, value, mask, scaling=scaling, dropout=dropout)[0].flatten(2)


class PostNormLastLayer(nn.Module):
    """The last layer of BERT or RoBERTa, to be mixed into theirs."""

    attention: Any
    feed_forward_chunk: Any

    def forward(
        self, hidden_states: Tensor, attention_mask: Tensor | None = None, *rest: Any, scored: Tensor | None = None,
        **others: Any,
    ) -> Tensor:  # fmt: skip
        """Hidden states (B, T, C) → those after the layer: at positions (B, M) of the flattened batch, else all."""
        if scored is None:
            return super().forward(hidden_states, attention_mask, *rest, **others)
        attention = self.attention.self
        asked, size = rows_at(hidden_states, scored), attention.attention_head_size
        query = by_head(attention.query(asked), size)
        key, value = (by_head(of(hidden_states), size) for of in (attention.key, attention.value))
        context = attend_at(
            scored, attention, query, key, value, attention_mask, attention.scaling, attention.dropout.p
        )
        return self.feed_forward_chunk(self.attention.output(context, asked))
