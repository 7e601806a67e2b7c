"""Attention and rotary positions for CPUs, where passes over memory cost more than products.

transformers' own convert scores and turned vectors to float32 and back; here they stay in the precision of the
products, whose softmax still adds in float32. At 128 tokens PyTorch's fused attention is slower than either on a CPU.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import masking_utils

from retrace.models.precision import product_precision

Tables = tuple[Tensor, Tensor]


def lean_attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, scaling: float,
    dropout: float = 0.0, **_: Any,
) -> tuple[Tensor, None]:  # fmt: skip
    """Queries (B, H, M, D), keys and values (B, K, T, D) for K heads that divide H → (B, M, H, D).

    The mask (B, 1, M, T), of `added_mask`, is added to the scores (Vaswani et al. 2017, equation 1).
    """
    if query.shape[1] != key.shape[1]:  # a key for several queries (Ainslie et al. 2023)
        key, value = (states.repeat_interleave(query.shape[1] // key.shape[1], 1) for states in (key, value))
    scores = torch.matmul(query * scaling, key.mT)
    if attention_mask is not None:
        scores.add_(attention_mask)
    weights = functional.dropout(scores.softmax(-1), dropout, module.training)
    return torch.matmul(weights, value).transpose(1, 2), None


def added_mask(seen: Tensor) -> Tensor:
    """What is added to scores so that a query sees a key where `seen` is True, in the precision of products."""
    precision = product_precision(seen.device)
    return torch.zeros_like(seen, dtype=precision).masked_fill_(~seen, torch.finfo(precision).min)


def sdpa_mask(
    attention_mask: Tensor | None = None, allow_is_bidirectional_skip: bool = False, **rest: Any
) -> Tensor | None:
    """The mask of transformers, which does not look first whether any token is hidden: the host would wait for a GPU.

    Batches have a mask only where some token is padding.
    """
    skips = allow_is_bidirectional_skip and attention_mask is None
    return masking_utils.sdpa_mask(attention_mask=attention_mask, allow_is_bidirectional_skip=skips, **rest)


def lean_mask(**options: Any) -> Tensor | None:
    """The same as numbers; a mask that is merely causal is not left out, as it is for PyTorch's attention."""
    seen = sdpa_mask(**{**options, "allow_is_causal_skip": False})
    return None if seen is None else added_mask(seen)


class _Rotation(torch.autograd.Function):
    """Turn pairs of numbers, one of each half of a vector, by an angle; the gradient is turned back."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        ctx.save_for_backward(cos, sin)
        return _turn(states, cos, sin)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        cos, sin = ctx.saved_tensors
        return _turn(gradients[0], cos, -sin), None, None


def signed(tables: Callable[..., Tables]) -> Callable[..., Tables]:
    """Wraps the forward pass of transformers' rotary embeddings, so that it makes the tables of all layers.

    Cosines and sines (B, T, D) are in the precision of products; sines are negative in the first half.
    """

    @wraps(tables)
    def forward(*given: Any, **named: Any) -> Tables:
        cos, sin = tables(*given, **named)
        first, second = sin.chunk(2, -1)
        precision = product_precision(sin.device)
        return cos.to(precision), torch.cat((-first, second), -1).to(precision)

    return forward


def turned(states: Tensor, cos: Tensor, sin: Tensor, unsqueeze_dim: int = 1) -> Tensor:
    """Queries or keys (B, H, T, D) turned by angles with `signed` tables (B, T, D), in their precision.

    The pairs of numbers that are turned together are D/2 apart (Su et al. 2021, equation 34, in another order).
    """
    tables = (table.unsqueeze(unsqueeze_dim).to(states.dtype) for table in (cos, sin))
    return cast(Tensor, _Rotation.apply(states, *tables))


def rotated(query: Tensor, key: Tensor, cos: Tensor, sin: Tensor, unsqueeze_dim: int = 1) -> tuple[Tensor, Tensor]:
    """Stands in for transformers' `apply_rotary_pos_emb`."""
    return turned(query, cos, sin, unsqueeze_dim), turned(key, cos, sin, unsqueeze_dim)


def _turn(states: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    return states.roll(states.shape[-1] // 2, -1).mul_(sin).addcmul_(states, cos)
