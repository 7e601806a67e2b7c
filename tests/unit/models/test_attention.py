import math

import pytest
import torch
from torch import Tensor, nn
from transformers.models.bert.modeling_bert import eager_attention_forward
from transformers.models.qwen2.modeling_qwen2 import apply_rotary_pos_emb

from retrace.models.attention import lean_attention, rotated, signed, turned
from retrace.models.heads import make_model
from tests.tiny import FAMILIES, tiny_config, tiny_tokenizer

TABLES = signed(lambda angles: (angles.cos(), angles.sin()))


def _gradients(loss: Tensor, *of: Tensor) -> list[Tensor]:
    return list(torch.autograd.grad(loss.sin().sum(), of))


def test_a_pair_is_rotated_by_its_angle() -> None:
    """Of (1, 0, 0, 2) the pairs are (1, 0) and (0, 2): a quarter turn of the first gives (0, 1)."""
    angles = torch.tensor([math.pi / 2, 0.0]).repeat(2)[None, None]
    states = torch.tensor([1.0, 0.0, 0.0, 2.0])[None, None, None]
    found = turned(states, *TABLES(angles))
    torch.testing.assert_close(found, torch.tensor([0.0, 0.0, 1.0, 2.0])[None, None, None])


@pytest.mark.parametrize("dimension", [1, 2])
def test_rotations_are_those_of_transformers(dimension: int) -> None:
    draws = torch.Generator().manual_seed(1)
    shape = (2, 3, 5, 8) if dimension == 1 else (2, 5, 3, 8)
    query, key = (torch.randn(shape, generator=draws, requires_grad=True) for _ in range(2))
    angles = torch.randn(2, 5, 4, generator=draws).repeat(1, 1, 2)
    ours = rotated(query, key, *TABLES(angles), dimension)
    theirs = apply_rotary_pos_emb(query, key, angles.cos(), angles.sin(), dimension)
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other)
    for mine, other in zip(*(_gradients(pair[0] + pair[1], query, key) for pair in (ours, theirs)), strict=True):
        torch.testing.assert_close(mine, other)


def test_attention_is_that_of_transformers() -> None:
    """With a mask, and with keys that two queries share."""
    draws = torch.Generator().manual_seed(1)
    query = torch.randn(2, 4, 5, 8, generator=draws, requires_grad=True)
    key, value = (torch.randn(2, 2, 6, 8, generator=draws, requires_grad=True) for _ in range(2))
    mask = torch.zeros(2, 1, 5, 6).masked_fill(torch.rand(2, 1, 5, 6, generator=draws) < 0.3, -1e30)
    module, inputs = nn.Module(), (query, key, value)
    ours, _ = lean_attention(module, *inputs, mask, 0.3)
    repeated = (query, key.repeat_interleave(2, 1), value.repeat_interleave(2, 1))
    theirs, _ = eager_attention_forward(module, *repeated, mask, 0.3)
    torch.testing.assert_close(ours, theirs)
    for mine, other in zip(_gradients(ours, *inputs), _gradients(theirs, *inputs), strict=True):
        torch.testing.assert_close(mine, other)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("head", ["classifier", "spans", "language_model"])
@torch.no_grad()
def test_models_answer_as_with_transformers_attention(family: str, head) -> None:
    """On a padded batch, and on one without padding."""
    config = tiny_config(family, tiny_tokenizer())
    lean, eager = (make_model(head, config, 1, attention).eval() for attention in ("lean", "eager"))
    ids = torch.arange(10, 34).view(2, 12)
    for length in (12, 7):
        mask = (torch.arange(12) < torch.tensor([[12], [length]])).long()
        found, expected = (model(input_ids=ids.where(mask > 0, config.pad_token_id), attention_mask=mask)
                           for model in (lean, eager))  # fmt: skip
        for name in ("logits", "start_logits", "end_logits"):
            if name in expected:
                kept = mask.bool() if expected[name].ndim > 1 and head != "classifier" else ...
                torch.testing.assert_close(found[name][kept], expected[name][kept])


def test_a_saved_config_does_not_name_the_attention() -> None:
    """transformers reads a saved model with its own."""
    config = tiny_config("bert", tiny_tokenizer())
    assert "lean" not in make_model("classifier", config, 1, "lean").config.to_json_string(use_diff=False)
