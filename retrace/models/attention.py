"""Attention and rotary positions for CPUs, where passes over memory cost more than products.

transformers' own convert scores and turned vectors to float32 and back; here they stay in the precision of the
products, whose softmax still adds in float32. At 128 tokens PyTorch's fused attention is slower than either on a CPU.
"""

from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import sdpa_mask

LEAN = "lean"  # its name among transformers' implementations


def lean_attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, scaling: float,
    dropout: float = 0.0, **_: Any,
) -> tuple[Tensor, None]:  # fmt: skip
    """Queries (B, H, M, D), keys and values (B, K, T, D) for K heads that divide H → (B, M, H, D).

    The mask is True where a query sees a key, and broadcasts to (B, H, M, T); without one a causal module's queries see
    the keys up to their own position (Vaswani et al. 2017, equation 1).
    """
    if query.shape[1] != key.shape[1]:  # a key for several queries (Ainslie et al. 2023)
        key, value = (states.repeat_interleave(query.shape[1] // key.shape[1], 1) for states in (key, value))
    scores = torch.matmul(query * scaling, key.mT)
    if attention_mask is None and getattr(module, "is_causal", False):
        attention_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
    if attention_mask is not None:
        scores = scores.masked_fill(~attention_mask, torch.finfo(scores.dtype).min)
    weights = functional.dropout(scores.softmax(-1), dropout, module.training)
    return torch.matmul(weights, value).transpose(1, 2), None


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


def rotated(query: Tensor, key: Tensor, cos: Tensor, sin: Tensor, unsqueeze_dim: int = 1) -> tuple[Tensor, Tensor]:
    """transformers' `apply_rotary_pos_emb` (Su et al. 2021, equation 34), in the precision of the queries.

    Queries and keys (B, H, T, D), angles (B, T, D) of which the second half repeats the first.
    """
    return turned(query, cos, sin, unsqueeze_dim), turned(key, cos, sin, unsqueeze_dim)


def turned(states: Tensor, cos: Tensor, sin: Tensor, unsqueeze_dim: int = 1) -> Tensor:
    """Queries or keys of `rotated` alone."""
    half = cos.shape[-1] // 2
    tables = (table[..., :half].unsqueeze(unsqueeze_dim).to(states.dtype) for table in (cos, sin))
    return cast(Tensor, _Rotation.apply(states, *tables))


def _turn(states: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = states.chunk(2, -1)
    result = torch.empty(states.shape, dtype=states.dtype, device=states.device)
    left, right = result.chunk(2, -1)
    torch.addcmul(first * cos, second, sin, value=-1, out=left)
    torch.addcmul(second * cos, first, sin, out=right)
    return result


AttentionInterface.register(LEAN, lean_attention)
AttentionMaskInterface.register(LEAN, sdpa_mask)
