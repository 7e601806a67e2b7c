import math
from typing import Literal

import pytest
import torch
from torch import nn

from retrace.models.heads import make_model
from retrace.models.language_model import make_language_model
from retrace.training.optimizer import (
    MOMENTUM,
    TOGETHER,
    Muon,
    make_optimizers,
    orthogonalised,
    rate_factor,
    set_rate,
)
from retrace.training.settings import OptimizerSettings
from tests.counting import Dispatched
from tests.tiny import MODEL, tiny_config, tiny_tokenizer


@pytest.mark.parametrize(("steps", "least", "lowest"), [(3, 1 / 49, 0.89), (5, 1 / 1000, 0.84)])
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
    """Also matrices of another shape, without a gradient, or one too many for a batch."""
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
    """As many layers as BERT-base, in the same proportions; a GPU waits for the launch of each kernel."""
    monkeypatch.setitem(TOGETHER, "cpu", TOGETHER["cuda"])
    config = tiny_config("bert", tiny_tokenizer(), layers=12, intermediate_size=4 * MODEL.hidden_size)
    model = make_model("language_model", config, 0, "eager")
    for weight in model.parameters():
        weight.grad = torch.ones_like(weight)
    optimizers = make_optimizers(model, OptimizerSettings(), 0.01)
    for optimizer in optimizers:
        optimizer.step()  # moments are made in the first step
    with Dispatched() as found:
        for optimizer in optimizers:
            optimizer.step()
    assert found.kernels <= 60


def test_the_rate_rises_stays_and_falls() -> None:
    recipe, falling = (OptimizerSettings(warmup_ratio=w, decay_start=d) for w, d in ((0.1, 0.5), (0.0, 0.0)))
    rates = [rate_factor(recipe, step / 20, updates=20) for step in range(21)]
    assert rates == pytest.approx([0.0, 0.5, *[1.0] * 9, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0])
    assert [rate_factor(falling, share, 4) for share in (0.0, 0.25, 1.0)] == [1.0, 0.75, 0.0]
    recipe = OptimizerSettings(warmup_ratio=0.05)
    assert [rate_factor(recipe, 0.0, updates) for updates in (1, 20, 21)] == [1.0, 1.0, 0.0], "no warm-up of one"


def test_muon_takes_the_hidden_matrices_and_adamw_the_rest() -> None:
    model = make_language_model(tiny_config("modernbert", tiny_tokenizer()), 0, "eager")
    adamw, muon = make_optimizers(model, OptimizerSettings(muon_lr_factor=10), 0.01)
    hidden = {id(weight) for weight in muon.param_groups[0]["params"]}
    names = {name for name, weight in model.named_parameters() if id(weight) in hidden}
    parts = ("attn.Wqkv", "attn.Wo", "mlp.Wi", "mlp.Wo")
    assert names == {f"body.model.layers.{layer}.{part}.weight" for layer in (0, 1) for part in parts}
    assert len(adamw.param_groups[0]["params"]) + len(hidden) == len(list(model.parameters()))
    set_rate([adamw, muon], 0.5)
    assert [group["lr"] for o in (adamw, muon) for group in o.param_groups] == [0.005, 0.05]
    assert len(make_optimizers(model, OptimizerSettings(kind="adamw"), 0.01)) == 1


@pytest.mark.parametrize("name", ["layers", "layer"])  # as in ModernBERT and Llama, and as in BERT
@pytest.mark.parametrize(("bf16", "steps"), [(False, 5), (False, 3), (True, 5)])
def test_both_optimizers_do_as_the_settings_say(name: str, bf16: bool, steps: Literal[3, 5]) -> None:
    model = nn.ModuleDict({"body": nn.ModuleDict({name: nn.ModuleList([nn.Linear(6, 4)])})})
    matrix = model.get_parameter(f"body.{name}.0.weight")
    alone = nn.Parameter(matrix.detach().clone())
    settings = OptimizerSettings(muon_lr_factor=10, muon_steps=steps, weight_decay=0.5, beta2=0.75)
    adamw, muon = make_optimizers(model, settings, 0.01, bf16)
    expected = Muon([alone], 0.1, 0.5, torch.bfloat16 if bf16 else torch.float32, steps)
    matrix.grad = torch.randn(4, 6, generator=torch.Generator().manual_seed(1))
    alone.grad = matrix.grad.clone()
    for optimizer in (muon, expected):
        optimizer.step()
    assert torch.equal(matrix, alone)
    assert (adamw.defaults["betas"], adamw.defaults["weight_decay"]) == ((0.9, 0.75), 0.5)


def test_muon_is_alone_where_only_hidden_matrices_are_trained() -> None:
    model = make_language_model(tiny_config("modernbert", tiny_tokenizer()), 0, "eager")
    for name, weight in model.named_parameters():
        weight.requires_grad_(".layers." in name and weight.ndim == 2)
    (muon,) = make_optimizers(model, OptimizerSettings(), 0.01)
    assert isinstance(muon, Muon)
