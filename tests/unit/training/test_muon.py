import pytest
import torch
from torch import nn

from stages.training.muon import MOMENTUM, Muon, orthogonalised


@pytest.mark.parametrize("shape", [(20, 48), (48, 20), (32, 32)])
def test_singular_values_come_near_one(shape: tuple[int, int]) -> None:
    matrix = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    update = orthogonalised(matrix, torch.float32, 5)
    values = torch.linalg.svdvals(update)
    assert update.shape == matrix.shape
    assert 0.5 < values.median() < 1.3
    assert values.max() < 1.3


@pytest.mark.parametrize(("steps", "least"), [(3, 1 / 40), (5, 1 / 480)])
def test_small_singular_values_need_more_steps(steps: int, least: float) -> None:
    """A step makes them 3.44 times as large, until they are near 1."""
    for share, grown in ((least, True), (least / 20, False)):
        update = orthogonalised(torch.diag(torch.tensor([1.0, share])), torch.float32, steps)
        smaller = torch.linalg.svdvals(update)[1].item()
        assert (smaller > 0.5) == grown
        assert grown or smaller == pytest.approx(share * 3.4445**steps, rel=0.1)


def test_in_bfloat16_it_is_torchs_muon_to_the_bit() -> None:
    first = torch.randn(24, 10, generator=torch.Generator().manual_seed(1))
    ours, theirs = nn.Parameter(first.clone()), nn.Parameter(first.clone())
    optimisers = [
        Muon([ours], 0.02, 0.1, torch.bfloat16, 5),
        torch.optim.Muon([theirs], lr=0.02, weight_decay=0.1, momentum=MOMENTUM),
    ]
    for seed in range(4):
        for weight, optimiser in zip((ours, theirs), optimisers, strict=True):
            weight.grad = torch.randn(24, 10, generator=torch.Generator().manual_seed(seed))
            optimiser.step()
    assert torch.equal(ours, theirs)


def test_float32_differs_from_bfloat16_by_its_rounding_only() -> None:
    matrix = torch.randn(24, 10, generator=torch.Generator().manual_seed(1))
    full, half = (orthogonalised(matrix, precision, 5).float() for precision in (torch.float32, torch.bfloat16))
    assert 0 < (full - half).norm() / full.norm() < 0.05
