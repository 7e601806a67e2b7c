import math

import pytest
import torch
from torch import nn

from retrace.models.heads import make_config, make_model
from retrace.tokens.tokenizer import Vocabulary
from retrace.training.optimizer import MOMENTUM, TOGETHER, Muon, make_optimizers, orthogonalised
from retrace.training.settings import OptimizerSettings
from tests.counting import Dispatched
from tests.tiny import MODEL, tiny_tokenizer


@pytest.mark.parametrize(("steps", "least", "lowest"), [(3, 1 / 22, 0.89), (5, 1 / 1000, 0.84)])
def test_singular_values_above_a_share_of_the_norm_come_near_one(steps: int, least: float, lowest: float) -> None:
    shares = torch.logspace(math.log10(least), 0, 50)
    for share in shares:
        matrix = torch.diag(torch.tensor([1.0, share])) / math.sqrt(1 + share**2)  # of norm 1
        values = torch.linalg.svdvals(orthogonalised(matrix[None], torch.float32, steps))
        assert lowest < values.min() <= values.max() < 1.15
    tiny = torch.diag(torch.tensor([1.0, least / 20]))
    assert torch.linalg.svdvals(orthogonalised(tiny[None], torch.float32, steps)).min() < 0.2


def test_with_its_coefficients_it_is_torchs_muon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retrace.training.optimizer.COEFFICIENTS", {5: [(3.4445, -4.7750, 2.0315)] * 5})
    monkeypatch.setattr("retrace.training.optimizer.SAFETY", 1)
    first = torch.randn(24, 10, generator=torch.Generator().manual_seed(1))
    ours, theirs = nn.Parameter(first.clone()), nn.Parameter(first.clone())
    optimizers = [
        Muon([ours], 0.02, 0.1, torch.bfloat16, 5),
        torch.optim.Muon([theirs], lr=0.02, weight_decay=0.1, momentum=MOMENTUM),
    ]
    for seed in range(4):
        for weight, optimizer in zip((ours, theirs), optimizers, strict=True):
            weight.grad = torch.randn(24, 10, generator=torch.Generator().manual_seed(seed))
            optimizer.step()
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6)


def test_batched_matrices_are_updated_as_if_each_were_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of another shape, without a gradient, or one too many for a batch too."""
    shapes = [(6, 4), (4, 6), (6, 4), (6, 4), (4, 6)]

    def moved(together: int) -> list[torch.Tensor]:
        monkeypatch.setitem(TOGETHER, "cpu", together)
        draws = torch.Generator().manual_seed(1)
        weights = [nn.Parameter(torch.randn(shape, generator=draws)) for shape in shapes]
        optimizer = Muon(weights, 0.02, 0.1, torch.float32, 5)
        for _ in range(3):
            for weight in weights[:-1]:
                weight.grad = torch.randn(weight.shape, generator=draws)
            optimizer.step()
        return [weight.detach() for weight in weights]

    for batched, alone in zip(moved(48), moved(1), strict=True):
        torch.testing.assert_close(batched, alone)


def test_a_step_of_bert_base_is_a_few_kernels_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """BERT's layers in number and in the ratio of their sides; a GPU waits for the launch of each kernel."""
    monkeypatch.setitem(TOGETHER, "cpu", TOGETHER["cuda"])
    sizes = MODEL.model_copy(update={"layers": 12, "intermediate_size": 4 * MODEL.hidden_size})
    model = make_model("language_model", make_config("bert", sizes, Vocabulary.of(tiny_tokenizer())), 0, "eager")
    for weight in model.parameters():
        weight.grad = torch.ones_like(weight)
    optimizers = make_optimizers(model, OptimizerSettings(), 0.01)
    for optimizer in optimizers:
        optimizer.step()  # moments are made in the first step
    with Dispatched() as found:
        for optimizer in optimizers:
            optimizer.step()
    assert found.kernels <= 60
