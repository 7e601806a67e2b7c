"""Adapters (Houlsby et al. 2019): two small bottlenecks a layer are trained, the rest of the body is frozen."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel

from stages.harness.settings import require
from stages.nets.heads import Head, read_model, sublayer_outputs
from stages.nets.part import MethodSettings, is_new

SPREAD = 1e-2  # standard deviation of the first weights, cut at two of them: section 3.6 of the paper


@dataclass(frozen=True)
class Settings(MethodSettings):
    """How narrow."""

    reduction: int = 16  # hidden size over bottleneck

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.reduction > 0, "reduction", self.reduction, "expected a whole number above 0")


class Bottleneck(nn.Module):
    """Down, swish, up, and the input added: at the start almost the identity."""

    def __init__(self, size: int, reduction: int) -> None:
        super().__init__()
        narrow = max(1, size // reduction)
        self.down, self.up = nn.Linear(size, narrow), nn.Linear(narrow, size)
        for layer in (self.down, self.up):
            nn.init.trunc_normal_(layer.weight, std=SPREAD, a=-2 * SPREAD, b=2 * SPREAD)
            nn.init.zeros_(layer.bias)

    def forward(self, hidden: Tensor) -> Tensor:
        """(…, C) → (…, C)."""
        return hidden + self.up(functional.silu(self.down(hidden)))


class Adapted(nn.Module):
    """A matrix of the body with a bottleneck behind it."""

    def __init__(self, matrix: nn.Linear, reduction: int) -> None:
        super().__init__()
        self.matrix, self.adapter = matrix, Bottleneck(matrix.out_features, reduction)

    def forward(self, hidden: Tensor) -> Tensor:
        """(…, in) → (…, C)."""
        return self.adapter(self.matrix(hidden))


def start(
    head: Head, pretrained: Path, seed: int, attention: str, settings: Settings, classes: Sequence[str] = ()
) -> PreTrainedModel:
    """The pretrained body, frozen, with bottlenecks behind attention and feed-forward.

    They are new, and so is the head unless it is a language model's, which is frozen too.
    """
    model = read_model(head, pretrained, seed, attention, classes)
    tune(model, head, seed, settings)
    return model


def tune(model: PreTrainedModel, head: Head, seed: int, settings: Settings) -> None:
    """Freeze what is not new and put bottlenecks into the body."""
    for name, weight in model.named_parameters():
        weight.requires_grad_(is_new(model, head, name))
    torch.manual_seed(seed)
    for name in sublayer_outputs(model):
        above, _, last = name.rpartition(".")
        matrix = model.get_submodule(name)
        if not isinstance(matrix, nn.Linear):
            raise TypeError(f"{name} is no matrix")
        setattr(model.get_submodule(above), last, Adapted(matrix, settings.reduction))
