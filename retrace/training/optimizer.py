"""The optimizers and their learning-rate schedule: Muon on the hidden matrices, AdamW on the rest.

Muon (Jordan et al. 2024) is SGD with momentum whose updates are orthogonalized: their singular values are brought near
1. This one differs from torch.optim.Muon in its coefficients and precision: torch's computes in bfloat16, which on a
CPU without instructions for it takes hundreds of times as long as float32. AdamW is that of Loshchilov and Hutter 2019.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.optim import Optimizer

from retrace.compute.sharding import full_tensor, local_shard
from retrace.training.settings import OptimizerSettings


def rate_factor(settings: OptimizerSettings, done: float, updates: int) -> float:
    """The learning rate as a fraction of its peak, after the fraction `done` of a run's updates.

    It rises linearly during the warm-up, stays at 1, and falls linearly from the start of the decay to 0 at the end. A
    warm-up of at most one update is skipped: it would only waste the first update at a rate of 0.
    """
    warmup, decay = settings.warmup_ratio, settings.decay_start
    if done < warmup and warmup * updates > 1:
        return done / warmup
    if done < decay or decay >= 1:
        return 1.0
    return max(0.0, (1 - done) / (1 - decay))


LISTS: Any = torch  # as its _foreach functions, which run one kernel on a list of tensors, have no types
MOMENTUM = 0.95
BETA1 = 0.9  # of AdamW
# Coefficients of each step's polynomial (Amsel et al. 2025, Polar Express, algorithm 1), fitted to singular values from
# 0.001 of a matrix's norm in five steps, as in the paper, or from 0.02 in three; both with a safety factor of 1.02 (in
# the paper 1.01).
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
# Elements of the matrices multiplied in one call: a CPU gains nothing from more; a GPU needs few kernel launches.
TOGETHER = {"cpu": 2**20, "cuda": 2**26}


class Muon(Optimizer):
    """Muon for matrices, with Nesterov momentum and decoupled weight decay.

    Matrices of one shape, or of its transpose, are multiplied together, and the work is split across processes.
    """

    def __init__(
        self, matrices: Iterable[nn.Parameter], lr: float, weight_decay: float, precision: torch.dtype, steps: int
    ) -> None:
        super().__init__(matrices, {"lr": lr, "weight_decay": weight_decay})
        self._precision, self._steps = precision, steps

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] - takes none
        """Make one update; tall matrices' updates are scaled by the root of height over width."""
        for group in self.param_groups:
            weights = [weight for weight in group["params"] if weight.grad is not None]
            updates = self._updates(weights)
            rates = [-group["lr"] * math.sqrt(max(1, weight.shape[0] / weight.shape[1])) for weight in weights]
            LISTS._foreach_mul_(updates, rates)
            LISTS._foreach_mul_(weights, 1 - group["lr"] * group["weight_decay"])
            LISTS._foreach_add_(weights, updates)

    def _updates(self, weights: list[nn.Parameter]) -> list[Tensor]:
        """The orthogonalized gradients with Nesterov momentum, in float32."""
        for weight in weights:
            if not self.state[weight]:
                self.state[weight]["momentum_buffer"] = torch.zeros_like(weight)
        gradients = [cast(Tensor, weight.grad) for weight in weights]
        momenta = [self.state[weight]["momentum_buffer"] for weight in weights]
        LISTS._foreach_lerp_(momenta, gradients, 1 - MOMENTUM)
        updates = list(LISTS._foreach_lerp(gradients, momenta, MOMENTUM))
        for numbers in _batched(weights):
            tall = {number for number in numbers if weights[number].shape[0] > weights[number].shape[1]}
            # Sharded matrices are gathered only for their own orthogonalization.
            whole = [full_tensor(updates[number]) for number in numbers]
            wide = [matrix.mT if number in tall else matrix for number, matrix in zip(numbers, whole, strict=True)]
            found = self._shared_out(wide).float()
            # In the strides of the weights, as a GPU would otherwise add them one by one.
            turned = found.mT.contiguous() if tall else found
            for place, number in enumerate(numbers):
                update = (turned if number in tall else found)[place]
                updates[number] = local_shard(update, weights[number])
        return updates

    def _shared_out(self, matrices: list[Tensor]) -> Tensor:
        """The orthogonalized matrices (N, R, C); each process computes an equal share."""
        processes = dist.get_world_size() if dist.is_initialized() else 1
        each = -(-len(matrices) // processes)
        first = dist.get_rank() * each if processes > 1 else 0
        mine = matrices[first : first + each]
        mine += [matrices[0]] * (each - len(mine))  # padding, whose results are dropped
        found = orthogonalised(torch.stack(mine), self._precision, self._steps)
        if processes == 1:
            return found
        of_all = found.new_empty(processes * each, *found.shape[1:])
        dist.all_gather_into_tensor(of_all, found)
        return of_all[: len(matrices)]


def orthogonalised(matrices: Tensor, precision: torch.dtype, steps: int) -> Tensor:
    """Bring the singular values of matrices (N, R, C) with R ≤ C near 1, by odd polynomials of degree 5.

    Five steps bring those above 1/1000 of a matrix's norm to between 0.84 and 1.15, three those above 1/49 to between
    0.89 and 1.11; smaller ones stay smaller.
    """
    matrices = matrices.to(precision)
    matrices = matrices / (SAFETY * matrices.norm(dim=(1, 2), keepdim=True)).clamp(min=EPSILON)
    for a, b, c in COEFFICIENTS[steps]:
        gram = matrices @ matrices.mT
        matrices = torch.baddbmm(matrices, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), matrices, beta=a)
    return matrices


def _batched(weights: Sequence[nn.Parameter]) -> Iterator[list[int]]:
    """The indices of matrices that share a shape, up to transposition, in batches."""
    alike: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for number, weight in enumerate(weights):
        alike[tuple(sorted(weight.shape))].append(number)
    for shape, numbers in alike.items():
        size = max(1, TOGETHER[weights[0].device.type] // math.prod(shape))
        yield from (numbers[start : start + size] for start in range(0, len(numbers), size))


def make_optimizers(model: nn.Module, settings: OptimizerSettings, lr: float, bf16: bool = False) -> list[Optimizer]:
    """Make a model's optimizers, with peak learning rates; with `bf16`, Muon multiplies matrices in bfloat16.

    Raises ValueError if no weight is trained.
    """
    trained = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    hidden: list[nn.Parameter] = []
    if settings.kind == "muon":  # matrices in layers, so no embeddings, head, norms or biases
        named = [name for name in trained if trained[name].ndim == 2 and (".layers." in name or ".layer." in name)]
        hidden = [trained.pop(name) for name in named]
    rest = [*trained.values()]
    optimizers: list[Optimizer] = []
    if rest or not hidden:  # LoRA on a language model trains hidden matrices only
        betas = (BETA1, settings.beta2)
        optimizers.append(torch.optim.AdamW(rest, lr, betas, weight_decay=settings.weight_decay, fused=True))
    if hidden:
        rate = lr * settings.muon_lr_factor
        precision = torch.bfloat16 if bf16 else torch.float32
        optimizers.append(Muon(hidden, rate, settings.weight_decay, precision, settings.muon_steps))
    return optimizers


def set_rate(optimizers: list[Optimizer], factor: float) -> None:
    """Set every learning rate to `factor` times its peak, which is the rate that its optimizer was made with."""
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = optimizer.defaults["lr"] * factor
