"""Attention and rotary positions for CPUs, and the last layer of a language model at scored positions only.

On a CPU, passes over memory cost more than matrix products. transformers' own attention and rotation convert scores and
rotated vectors to float32 and back. Here they stay in the precision of the products, though softmax still sums in
float32. At 128 tokens PyTorch's fused attention is slower than either on a CPU.

The last layer's output is needed only at scored positions, which are few in masked language modelling. At the other
positions the last layer computes only keys and values.
"""

from collections.abc import Callable
from functools import wraps
from types import new_class
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import masking_utils
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from retrace.models.dropout import dropped

Tables = tuple[Tensor, Tensor]


def product_precision(device: torch.device) -> torch.dtype:
    """The precision of matrix products on a device: autocast's if it is on."""
    kind = device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else torch.float32


def lean_attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, scaling: float,
    dropout: float = 0.0, **_: Any,
) -> tuple[Tensor, None]:  # fmt: skip
    """Queries (B, H, M, D), keys and values (B, K, T, D) for K heads that divide H → (B, M, H, D).

    The mask (B, 1, M, T), of `added_mask`, is added to the scores (Vaswani et al. 2017, equation 1).
    """
    if query.shape[1] != key.shape[1]:  # grouped queries (Ainslie et al. 2023)
        key, value = (states.repeat_interleave(query.shape[1] // key.shape[1], 1) for states in (key, value))
    scores = torch.matmul(query * scaling, key.mT)
    if attention_mask is not None:
        scores.add_(attention_mask)
    weights = dropped(scores.softmax(-1), dropout, module.training)
    return torch.matmul(weights, value).transpose(1, 2), None


def added_mask(seen: Tensor) -> Tensor:
    """The additive mask with which queries see keys only where `seen` is True, in the precision of products."""
    precision = product_precision(seen.device)
    return torch.zeros_like(seen, dtype=precision).masked_fill_(~seen, torch.finfo(precision).min)


def sdpa_mask(
    attention_mask: Tensor | None = None, allow_is_bidirectional_skip: bool = False, **rest: Any
) -> Tensor | None:
    """transformers' mask, without its check whether any token is masked, for which the host would wait for a GPU.

    Batches without padding have no mask anyway.
    """
    skips = allow_is_bidirectional_skip and attention_mask is None
    return masking_utils.sdpa_mask(attention_mask=attention_mask, allow_is_bidirectional_skip=skips, **rest)


def lean_mask(**options: Any) -> Tensor | None:
    """`sdpa_mask` as an additive mask; for purely causal attention too, where PyTorch's attention needs no mask."""
    seen = sdpa_mask(**{**options, "allow_is_causal_skip": False})
    return None if seen is None else added_mask(seen)


class _Rotation(torch.autograd.Function):
    """Rotate pairs of numbers, one from each half of a vector, by an angle; gradients are rotated back."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        ctx.save_for_backward(cos, sin)
        return _turn(states, cos, sin)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        cos, sin = ctx.saved_tensors
        return _turn(gradients[0], cos, -sin), None, None


def signed(tables: Callable[..., Tables]) -> Callable[..., Tables]:
    """Wrap the forward pass of transformers' rotary embeddings to make the tables that `turned` needs.

    Cosines and sines (B, T, D) are in the precision of products; sines are negated in the first half.
    """

    @wraps(tables)
    def forward(*given: Any, **named: Any) -> Tables:
        cos, sin = tables(*given, **named)
        first, second = sin.chunk(2, -1)
        precision = product_precision(sin.device)
        return cos.to(precision), torch.cat((-first, second), -1).to(precision)

    return forward


def turned(states: Tensor, cos: Tensor, sin: Tensor, unsqueeze_dim: int = 1) -> Tensor:
    """Queries or keys (B, H, T, D) rotated by the angles of `signed` tables (B, T, D), in their own precision.

    The numbers of a pair are D/2 apart (Su et al. 2021, equation 34, in another order).
    """
    tables = (table.unsqueeze(unsqueeze_dim).to(states.dtype) for table in (cos, sin))
    return cast(Tensor, _Rotation.apply(states, *tables))


def rotated(query: Tensor, key: Tensor, cos: Tensor, sin: Tensor, unsqueeze_dim: int = 1) -> tuple[Tensor, Tensor]:
    """Replaces transformers' `apply_rotary_pos_emb`."""
    return turned(query, cos, sin, unsqueeze_dim), turned(key, cos, sin, unsqueeze_dim)


def _turn(states: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    return states.roll(states.shape[-1] // 2, -1).mul_(sin).addcmul_(states, cos)


def score_late(body: nn.Module, kind: type[nn.Module]) -> None:
    """Give the last layer of a body the class `kind`, which can compute scored positions only."""
    *_, last = (module for module in body.modules() if isinstance(module, GradientCheckpointingLayer))
    if not isinstance(last, kind):
        last.__class__ = new_class("LastLayer", (kind, type(last)))


def rows_at(hidden: Tensor, scored: Tensor) -> Tensor:
    """Hidden states (B, T, C) at positions (B, M) of the flattened batch → (B, M, C)."""
    return hidden.flatten(0, 1).index_select(0, scored.flatten()).unflatten(0, scored.shape)


def by_head(states: Tensor, size: int) -> Tensor:
    """States (B, T, C) split into heads of `size` numbers: (B, H, T, D)."""
    return states.unflatten(-1, (-1, size)).transpose(1, 2)


def attend_at(
    scored: Tensor, module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float,
    dropout: float,
) -> Tensor:  # fmt: skip
    """The model's attention for queries (B, H, M, D) at scored positions → (B, M, C); the mask is (B, 1, T, T)."""
    if mask is not None:
        rows = torch.arange(len(scored), device=scored.device)[:, None]
        mask = mask[rows, 0, scored % key.shape[2]][:, None]
    attention = ALL_ATTENTION_FUNCTIONS[module.config._attn_implementation]
    dropout = dropout if module.training else 0.0
    return attention(module, query, key, value, mask, scaling=scaling, dropout=dropout)[0].flatten(2)


class PostNormLastLayer(nn.Module):
    """A mix-in for the last layer of BERT or RoBERTa."""

    attention: Any
    feed_forward_chunk: Any

    def forward(
        self, hidden_states: Tensor, attention_mask: Tensor | None = None, *rest: Any, scored: Tensor | None = None,
        **others: Any,
    ) -> Tensor:  # fmt: skip
        """Hidden states (B, T, C) → those after the layer: at positions `scored` (B, M) of the flat batch, or all."""
        if scored is None:
            return super().forward(hidden_states, attention_mask, *rest, **others)
        attention = self.attention.self
        asked, size = rows_at(hidden_states, scored), attention.attention_head_size
        query = by_head(attention.query(asked), size)
        key, value = (by_head(project(hidden_states), size) for project in (attention.key, attention.value))
        scaling, dropout = attention.scaling, attention.dropout.p
        context = attend_at(scored, attention, query, key, value, attention_mask, scaling, dropout)
        return self.feed_forward_chunk(self.attention.output(context, asked))
