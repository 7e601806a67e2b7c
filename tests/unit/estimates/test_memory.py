"""Bytes of tensors that are alive at once."""

import pytest
import torch

from retrace.estimates.memory import LiveMemory


def test_the_peak_is_of_what_is_alive_together() -> None:
    with LiveMemory() as live:
        first = torch.zeros(100)
        del first
        second = torch.zeros(50)
        view = second[:10]
        del second
    assert live.peak == 400
    assert live.now == 200, "a view keeps its storage"
    del view
    assert live.now == 0


@pytest.mark.parametrize("size", [1000, 2000])
def test_what_the_backward_pass_keeps_counts(size: int) -> None:
    weight = torch.ones(size, requires_grad=True)
    with LiveMemory() as live:
        kept = weight.exp()  # the backward pass needs the result
        result = kept.sum()
        del kept
        assert live.now == 4 * size + 4
        result.backward()
        del result
    assert live.now == 4 * size, "the gradient"
