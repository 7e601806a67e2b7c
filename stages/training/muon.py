"""Muon (Jordan et al. 2024): momentum whose singular values are all brought near 1.

As torch.optim.Muon, but for the precision: that one computes in bfloat16 everywhere, over which a
processor without instructions for it takes hundreds of times as long as over float32.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from stages.training.sharding import part, whole

MOMENTUM = 0.95
COEFFICIENTS, EPSILON = (3.4445, -4.7750, 2.0315), 1e-7  # of the Newton-Schulz iteration, as published
TOGETHER = 2**20  # numbers of the matrices that are multiplied in one call; larger ones gain nothing by it


class Muon(Optimizer):
    """Muon for matrices, with Nesterov momentum and decoupled weight decay; `steps` of products in `precision`.

    Small matrices of one shape are multiplied together, which takes down to a sixth of the time of one by one.
    """

    def __init__(
        self, matrices: Iterable[nn.Parameter], lr: float, weight_decay: float, precision: torch.dtype, steps: int
    ) -> None:
        super().__init__(matrices, {"lr": lr, "weight_decay": weight_decay})
        self._precision, self._steps = precision, steps

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] - takes none
        """One update; a taller matrix moves further, by the root of how much taller than wide it is."""
        for group in self.param_groups:
            for weights in _together([weight for weight in group["params"] if weight.grad is not None]):
                # Where processes share matrices, they are whole for their own orthogonalisation alone.
                directions = torch.stack([whole(self._direction(weight)) for weight in weights])
                updates = orthogonalised(directions, self._precision, self._steps)
                tall = math.sqrt(max(1, directions.shape[1] / directions.shape[2]))
                for weight, update in zip(weights, updates, strict=True):
                    weight.mul_(1 - group["lr"] * group["weight_decay"])
                    weight.add_(part(update, weight), alpha=-group["lr"] * tall)

    def _direction(self, weight: nn.Parameter) -> Tensor:
        """The gradient with its momentum, as Nesterov has it."""
        assert weight.grad is not None
        state = self.state[weight]
        if not state:
            state["momentum_buffer"] = torch.zeros_like(weight)
        momentum = state["momentum_buffer"]
        momentum.lerp_(weight.grad, 1 - MOMENTUM)
        return weight.grad.lerp(momentum, MOMENTUM)


def orthogonalised(matrices: Tensor, precision: torch.dtype, steps: int) -> Tensor:
    """The matrices (N, R, C) with singular values of about 0.5 to 1.5, by quintic Newton-Schulz steps.

    A step makes small ones 3.4 times as large: with five, 1/500 of a matrix's norm ends near 1, with three 1/40.
    """
    is_tall = matrices.shape[1] > matrices.shape[2]
    a, b, c = COEFFICIENTS
    wide = matrices.to(precision)
    wide = wide.mT if is_tall else wide
    wide = wide / wide.norm(dim=(1, 2), keepdim=True).clamp(min=EPSILON)
    for _ in range(steps):
        gram = wide @ wide.mT
        wide = torch.baddbmm(wide, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), wide, beta=a)
    return wide.mT if is_tall else wide


def _together(weights: Iterable[nn.Parameter]) -> Iterator[list[nn.Parameter]]:
    """The matrices in batches of one shape."""
    alike: dict[torch.Size, list[nn.Parameter]] = defaultdict(list)
    for weight in weights:
        alike[weight.shape].append(weight)
    for shape, matrices in alike.items():
        size = max(1, TOGETHER // shape.numel())
        yield from (matrices[start : start + size] for start in range(0, len(matrices), size))
