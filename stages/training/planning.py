"""What a pretraining run takes, known before it: operations, and the memory of a device.

Nothing is estimated by formula: one block and two blocks go through the real model with fake tensors, which
have shapes but no values, while operations are counted and what autograd keeps is added up. A constant part,
such as weights in bf16, and the part of each block follow from the difference.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode
from transformers import PreTrainedConfig
from transformers.initialization import no_init_weights

from stages.nets.language_model import LanguageModel, make_language_model
from stages.training.muon import Muon
from stages.training.optimisers import make_optimisers
from stages.training.settings import PretrainSettings

FLOAT = 4  # bytes; weights, gradients and moments are float32 whatever the precision of products


@dataclass(frozen=True)
class Needs:
    """What training a model takes."""

    parameters: int
    flops: float  # of matrix products, for one token, forward and backward
    fixed: int  # bytes: weights, gradients, the optimiser's moments, copies of weights in bf16
    block: int  # bytes kept of each block from the forward pass for the backward pass

    def memory(self, blocks: int, processes: int) -> int:
        """Bytes that one of the processes needs for its `blocks` of a batch; many keep a copy of the gradients."""
        copy = FLOAT * self.parameters if processes > 1 else 0
        return self.fixed + copy + blocks * self.block

    def seconds(self, tokens: float, devices: int, speed: float) -> float:
        """Time to train on so many tokens with devices that each do `speed` operations a second."""
        return tokens * self.flops / (devices * speed)


def measure_needs(config: PreTrainedConfig, recipe: PretrainSettings, bf16: bool, attention: str) -> Needs:
    """The needs of a language model of this config under a recipe; neither memory nor time of the run is spent."""
    with FakeTensorMode(), no_init_weights():
        model = make_language_model(config, 0, attention).train()
        model.body.tie_weights()  # which transformers leaves out where it draws no weights
        moments = sum(
            (1 if isinstance(optimiser, Muon) else 2) * weight.numel()
            for optimiser in make_optimisers(model, recipe.optimiser, 1.0)
            for group in optimiser.param_groups
            for weight in group["params"]
        )
        (flops, one), (_, two) = (_pass(model, blocks, recipe, bf16) for blocks in (1, 2))
    parameters = sum(weight.numel() for weight in model.parameters())
    fixed = FLOAT * (2 * parameters + moments) + one - (two - one)
    return Needs(parameters, flops / recipe.block, fixed, two - one)


def _pass(model: LanguageModel, blocks: int, recipe: PretrainSettings, bf16: bool) -> tuple[int, int]:
    """Operations of a forward and backward pass over so many blocks, and the bytes kept between the two."""
    weights = {weight.untyped_storage()._cdata for weight in model.parameters()}
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in weights:
            kept[storage._cdata] = storage.nbytes()
        return tensor

    ids = torch.zeros(blocks, recipe.block, dtype=torch.long)
    asked = blocks * (int(recipe.block * recipe.mask_rate) if model.objective == "masked" else recipe.block)
    with FlopCounterMode(display=False) as counter, torch.autograd.graph.saved_tensors_hooks(keep, lambda t: t):
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            scores = model.first(ids, asked)
        loss = nn.functional.cross_entropy(scores.float(), torch.zeros(asked, dtype=torch.long))
        loss.backward()
    return counter.get_total_flops(), sum(kept.values())
