"""Muon (Jordan et al. 2024): momentum whose singular values are all brought near 1.

As torch.optim.Muon, but for the precision: that one computes in bfloat16 everywhere, over which a
processor without instructions for it takes hundreds of times as long as over float32.
"""

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from stages.training.sharding import part, whole

MOMENTUM = 0.95
COEFFICIENTS, EPSILON = (3.4445, -4.7750, 2.0315), 1e-7  # of the Newton-Schulz iteration, as published


class Muon(Optimizer):
    """Muon for matrices, with Nesterov momentum and decoupled weight decay; `steps` of products in `precision`."""

    def __init__(
        self, matrices: Iterable[nn.Parameter], lr: float, weight_decay: float, precision: torch.dtype, steps: int
    ) -> None:
        super().__init__(matrices, {"lr": lr, "weight_decay": weight_decay})
        self._precision, self._steps = precision, steps

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] - takes none
        """One update; a taller matrix moves further, by the root of how much taller than wide it is."""
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                momentum = self.state[weight].setdefault("momentum_buffer", torch.zeros_like(weight))
                momentum.lerp_(weight.grad, 1 - MOMENTUM)
                # Where processes share the matrix, it is whole for its own orthogonalisation alone.
                update = orthogonalised(whole(weight.grad.lerp(momentum, MOMENTUM)), self._precision, self._steps)
                weight.mul_(1 - group["lr"] * group["weight_decay"])
                tall = math.sqrt(max(1, weight.shape[0] / weight.shape[1]))
                weight.add_(part(update, weight), alpha=-group["lr"] * tall)


def orthogonalised(matrix: Tensor, precision: torch.dtype, steps: int) -> Tensor:
    """The matrix (R, C) with singular values of about 0.5 to 1.5, by quintic Newton-Schulz steps.

    A step makes small ones 3.4 times as large: with five, 1/500 of the matrix's norm ends near 1, with three 1/40.
    """
    is_tall = matrix.shape[0] > matrix.shape[1]
    a, b, c = COEFFICIENTS
    wide = matrix.to(precision)
    wide = wide.T if is_tall else wide
    wide = wide / wide.norm().clamp(min=EPSILON)
    for _ in range(steps):
        gram = wide @ wide.T
        wide = torch.addmm(wide, torch.addmm(gram, gram, gram, beta=b, alpha=c), wide, beta=a)
    return wide.T if is_tall else wide
