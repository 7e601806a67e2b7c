"""Operations and memory of a run, known before it."""

import pytest
import torch

from stages.nets.heads import make_config
from stages.nets.language_model import make_language_model
from stages.nets.vocabulary import Vocabulary
from stages.training.causal import next_tokens
from stages.training.flops import count_flops
from stages.training.language import token_loss
from stages.training.masking import Masking, mask_blocks
from stages.training.planning import Needs, measure_needs
from stages.training.settings import OptimiserSettings, PretrainSettings
from tests.tiny import FAMILIES, MODEL

VOCABULARY = Vocabulary(120, *range(5))
RECIPE = PretrainSettings(epochs=1, batch_size=2, block=40, mask_rate=0.3)


@pytest.mark.parametrize("family", FAMILIES)
def test_planned_operations_are_those_of_training(family: str) -> None:
    config = make_config(family, MODEL, VOCABULARY)
    needs = measure_needs(config, RECIPE, bf16=False, attention="eager")
    model = make_language_model(config, 0, "eager")
    generator = torch.Generator().manual_seed(0)
    blocks = torch.randint(5, 120, (2, 40), generator=generator)
    if model.objective == "causal":
        batch = next_tokens(blocks, VOCABULARY)
    else:
        batch = mask_blocks(blocks, Masking(0.3), VOCABULARY, generator)
    counted = count_flops(model, lambda: token_loss(model, batch)[0]) / blocks.numel()
    assert needs.parameters == sum(weight.numel() for weight in model.parameters())
    assert needs.flops == pytest.approx(counted, rel=0.01)  # causal: the last token of a block is not asked


def test_memory_grows_with_blocks_and_moments() -> None:
    config = make_config("modernbert", MODEL, VOCABULARY)
    muon = measure_needs(config, RECIPE, bf16=False, attention="eager")
    adamw = PretrainSettings(1, 2, 40, optimiser=OptimiserSettings(kind="adamw"))
    both = measure_needs(config, adamw, bf16=False, attention="eager")
    hidden = 2 * (32 * 96 + 32 * 32 + 32 * 128 + 32 * 64)  # matrices of two layers, which Muon gives one moment
    assert both.fixed - muon.fixed == 4 * hidden
    assert muon.fixed >= 4 * (3 * muon.parameters)
    assert muon.memory(3, 1) - muon.memory(1, 1) == 2 * muon.block
    assert muon.memory(1, 2) - muon.memory(1, 1) == 4 * muon.parameters


def test_twice_the_devices_take_half_the_time() -> None:
    needs = Needs(parameters=1, flops=6.0, fixed=0, block=0)
    assert needs.seconds(tokens=1e6, devices=1, speed=1e3) == 6000
    assert needs.seconds(tokens=1e6, devices=2, speed=1e3) == 3000
