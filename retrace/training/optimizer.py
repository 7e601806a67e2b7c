"""The learning rate over a run: up, flat, down.

Muon (Jordan et al. 2024): momentum whose singular values are all brought near 1.

As torch.optim.Muon, but for the precision: that one computes in bfloat16 everywhere, over which a
processor without instructions for it takes hundreds of times as long as over float32.

Muon on the hidden matrices (Jordan et al. 2024), AdamW (Loshchilov and Hutter 2019) on the rest.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from retrace.compute.sharding import full_tensor, local_shard
from retrace.training.settings import OptimizerSettings


def rate_factor(done: float, warmup: float, flat: float) -> float:
    """The share of the peak rate when the share `done` of the steps is behind.

    Rises linearly up to `warmup`, stays at 1 up to `flat`, then falls linearly to 0 at the end.
    """
    if done < warmup:
        return done / warmup
    if done < flat or flat >= 1:
        return 1.0
    return max(0.0, (1 - done) / (1 - flat))


MOMENTUM = 0.95
BETA1 = 0.9  # of AdamW
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
                directions = torch.stack([full_tensor(self._direction(weight)) for weight in weights])
                updates = orthogonalised(directions, self._precision, self._steps)
                tall = math.sqrt(max(1, directions.shape[1] / directions.shape[2]))
                for weight, update in zip(weights, updates, strict=True):
                    weight.mul_(1 - group["lr"] * group["weight_decay"])
                    weight.add_(local_shard(update, weight), alpha=-group["lr"] * tall)

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


def make_optimizers(model: nn.Module, settings: OptimizerSettings, lr: float, bf16: bool = False) -> list[Optimizer]:
    """The optimizers of a model, each group with its peak rate under `peak`; `bf16`: Muon multiplies in bfloat16.

    Raises ValueError where the model trains no weights.
    """
    hidden = [weight for name, weight in model.named_parameters() if _is_hidden_matrix(name, weight)]
    if settings.kind == "adamw":
        hidden = []
    taken = {id(weight) for weight in hidden}
    rest = [weight for weight in model.parameters() if id(weight) not in taken and weight.requires_grad]
    optimizers: list[Optimizer] = []
    if rest or not hidden:  # of a language model tuned by LoRA, all that is trained are hidden matrices
        betas = (BETA1, settings.beta2)
        optimizers.append(torch.optim.AdamW(rest, lr, betas, weight_decay=settings.weight_decay, fused=True))
    if hidden:
        rate = lr * settings.muon_lr_factor
        precision = torch.bfloat16 if bf16 else torch.float32
        optimizers.append(Muon(hidden, rate, settings.weight_decay, precision, settings.muon_steps))
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["peak"] = group["lr"]
    return optimizers


def set_rate(optimizers: list[Optimizer], factor: float) -> None:
    """Set every learning rate to `factor` of its peak."""
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = group["peak"] * factor


def _is_hidden_matrix(name: str, weight: nn.Parameter) -> bool:
    """Weights of the layers with two dimensions: neither embeddings, heads, norms nor biases."""
    return weight.ndim == 2 and weight.requires_grad and any(part in name for part in (".layers.", ".layer."))
