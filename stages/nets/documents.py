"""Attention that stays within a document where several share a block (Raffel et al. 2020 pack examples so)."""

import torch
from torch import Tensor


def within_documents(ids: Tensor, first: int, causal: bool, attention: str | None) -> Tensor:
    """The attention mask of ids (B, T) in which each document begins with the token `first`: (B, 1, T, T).

    It is what transformers' implementation `attention` takes: bool for sdpa, else what is added to the scores.
    """
    document = (ids == first).cumsum(1)
    seen = document[:, None, :, None] == document[:, None, None, :]
    if causal:
        seen = seen.tril()
    if attention == "sdpa":
        return seen
    return torch.zeros_like(seen, dtype=torch.float32).masked_fill(~seen, torch.finfo(torch.float32).min)
