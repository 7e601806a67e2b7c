"""The optimizers and their learning-rate schedule: Muon on the hidden matrices, AdamW on the rest.

Muon (Jordan et al. 2024) is momentum whose singular values are all brought near 1. This one is torch.optim.Muon but for
the precision: torch's computes in bfloat16, which takes a CPU without instructions for it hundreds of times as long as
float32. AdamW is that of Loshchilov and Hutter 2019.
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
    """The learning rate as a share of its peak when the share `done` of the run is over.

    Rises linearly up to `warmup`, stays at 1 up to `flat`, then falls linearly to 0 at the end.
    """
    if done < warmup:
        return done / warmup
    if done < flat or flat >= 1:
        return 1.0
    return max(0.0, (1 - done) / (1 - flat))


MOMENTUM = 0.95
BETA1 = 0.9  # of AdamW
# Of the polynomials of each step (Amsel et al. 2025, Polar Express, algorithm 1): fitted to singular values from 0.001
# of a matrix's norm in five steps, as published, and from 0.02 in three; both with a safety factor of 1.02.
COEFFICIENTS = {
    5: (
        (8.156555, -22.483293, 15.878770),
        (4.042930, -2.808917, 0.500018),
        (3.891668, -2.772484, 0.506065),
        (3.285754, -2.368129, 0.464490),
        (2.346541, -1.709783, 0.423236),
    ),
    3: ((7.559774, -20.838285, 14.716987), (3.167193, -2.282934, 0.455220), (2.244927, -1.618441, 0.413370)),
}
SAFETY, EPSILON = 1.02, 1e-7
TOGETHER = 2**20  # numbers in the matrices that are multiplied in one call; more gain nothing


class Muon(Optimizer):
    """Muon for matrices, with Nesterov momentum and decoupled weight decay.

    Small matrices of one shape are multiplied together, which is up to six times as fast as one by one.
    """

    def __init__(
        self, matrices: Iterable[nn.Parameter], lr: float, weight_decay: float, precision: torch.dtype, steps: int
    ) -> None:
        super().__init__(matrices, {"lr": lr, "weight_decay": weight_decay})
        self._precision, self._steps = precision, steps
        # 1 where the next step is to change no weight, as with torch's fused optimizers.
        self.found_inf = torch.zeros((), device=self.param_groups[0]["params"][0].device)

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] - takes none
        """Make one update; that of a tall matrix is scaled by the root of height over width."""
        skips = self.found_inf > 0
        for group in self.param_groups:
            kept = 1 - (group["lr"] * group["weight_decay"]) * (~skips).double()  # of each weight
            for weights in _batched([weight for weight in group["params"] if weight.grad is not None]):
                # Sharded matrices are gathered for their own orthogonalisation only.
                directions = torch.stack([full_tensor(self._direction(weight)) for weight in weights])
                updates = orthogonalised(directions, self._precision, self._steps).masked_fill(skips, 0.0)
                tall = math.sqrt(max(1, directions.shape[1] / directions.shape[2]))
                for weight, update in zip(weights, updates, strict=True):
                    weight.mul_(kept)
                    weight.add_(local_shard(update, weight), alpha=-group["lr"] * tall)

    def _direction(self, weight: nn.Parameter) -> Tensor:
        """The gradient with Nesterov momentum."""
        assert weight.grad is not None
        state = self.state[weight]
        if not state:
            state["momentum_buffer"] = torch.zeros_like(weight)
        momentum = state["momentum_buffer"]
        momentum.lerp_(weight.grad, 1 - MOMENTUM)
        return weight.grad.lerp(momentum, MOMENTUM)


def orthogonalised(matrices: Tensor, precision: torch.dtype, steps: int) -> Tensor:
    """The matrices (N, R, C) with singular values near 1, by polynomials of odd degree up to 5.

    Five steps bring those above 1/1000 of a matrix's norm to between 0.84 and 1.15, three those above 1/22 to between
    0.89 and 1.11; smaller ones stay smaller.
    """
    is_tall = matrices.shape[1] > matrices.shape[2]
    wide = matrices.to(precision)
    wide = wide.mT if is_tall else wide
    wide = wide / (SAFETY * wide.norm(dim=(1, 2), keepdim=True)).clamp(min=EPSILON)
    for a, b, c in COEFFICIENTS[steps]:
        gram = wide @ wide.mT
        wide = torch.baddbmm(wide, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), wide, beta=a)
    return wide.mT if is_tall else wide


def _batched(weights: Iterable[nn.Parameter]) -> Iterator[list[nn.Parameter]]:
    """Batches of matrices of one shape."""
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
    hidden: list[nn.Parameter] = []  # matrices of layers: no embedding, head, norm or bias
    rest: list[nn.Parameter] = []
    for name, weight in model.named_parameters():
        is_hidden = weight.ndim == 2 and (".layers." in name or ".layer." in name)
        if weight.requires_grad and is_hidden and settings.kind == "muon":
            hidden.append(weight)
        elif weight.requires_grad:
            rest.append(weight)
    optimizers: list[Optimizer] = []
    if rest or not hidden:  # with LoRA on a language model, hidden matrices are all that is trained
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
    """Set every learning rate to its peak times `factor`."""
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = group["peak"] * factor
