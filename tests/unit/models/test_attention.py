import pytest
import torch
from torch import Tensor, nn
from transformers.models.bert.modeling_bert import eager_attention_forward
from transformers.models.qwen2.modeling_qwen2 import apply_rotary_pos_emb

from retrace.models.attention import lean_attention, rotated, signed
from retrace.models.heads import make_model
from tests.counting import Dispatched
from tests.tiny import tiny_config, tiny_tokenizer

TABLES = signed(lambda angles: (angles.cos(), angles.sin()))


def _gradients(loss: Tensor, *of: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad(loss.sin().sum(), of)


@pytest.mark.parametrize("dimension", [1, 2])
def test_rotations_are_those_of_transformers(dimension: int) -> None:
    draws = torch.Generator().manual_seed(1)
    shape = (2, 3, 5, 8) if dimension == 1 else (2, 5, 3, 8)
    query, key = (torch.randn(shape, generator=draws, requires_grad=True) for _ in range(2))
    angles = torch.randn(2, 5, 4, generator=draws).repeat(1, 1, 2)
    ours = rotated(query, key, *TABLES(angles), dimension)
    theirs = apply_rotary_pos_emb(query, key, angles.cos(), angles.sin(), dimension)
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(_gradients(ours[0] + ours[1], query, key), _gradients(theirs[0] + theirs[1], query, key))


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
    torch.testing.assert_close(_gradients(ours, *inputs), _gradients(theirs, *inputs))


def test_a_saved_config_does_not_name_the_attention() -> None:
    """transformers reads a saved model with its own."""
    config = tiny_config("bert", tiny_tokenizer())
    assert "lean" not in make_model("classifier", config, 1, "lean").config.to_json_string(use_diff=False)


@pytest.mark.parametrize("kind", ["full_attention", "sliding_attention"])
@torch.no_grad()
def test_no_mask_is_made_of_sliding_attention_that_no_layer_has(kind: str) -> None:
    """ModernBERT's window reaches 64 tokens to each side, so only a longer input needs one."""
    config, kernels = tiny_config("modernbert", tiny_tokenizer(), max_positions=128), []
    config.layer_types = ["full_attention", kind]
    model = make_model("classifier", config, 1, "lean").eval()
    for length in (60, 100):
        with Dispatched() as found:
            model(input_ids=torch.full((2, length), 7))
        kernels.append(found.kernels)
    assert (kernels[0] == kernels[1]) == (kind == "full_attention")
