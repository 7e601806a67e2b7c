"""Muon on the hidden matrices (Jordan et al. 2024), AdamW (Loshchilov and Hutter 2019) on the rest."""

import torch
from torch import nn
from torch.distributed.tensor import DTensor
from torch.optim import Optimizer
from torch.optim._muon import _adjust_lr, _zeropower_via_newtonschulz

from stages.training.settings import OptimiserSettings
from stages.training.sharding import part, whole

MOMENTUM = 0.95  # Muon's


class ShardedMuon(torch.optim.Muon):
    """Muon on sharded matrices: each process keeps its part, and a matrix is whole for its own orthogonalisation alone.

    PyTorch's runs on parts too, but then every product of the iteration is sharded and rounds in its own way.
    """

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """One update, the same as PyTorch's of whole matrices."""
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                state = self.state[weight]
                if not state:
                    state["momentum_buffer"] = torch.zeros_like(weight.grad)
                momentum = state["momentum_buffer"].lerp_(weight.grad, 1 - group["momentum"])
                ahead = whole(weight.grad.lerp(momentum, group["momentum"]))
                ahead = _zeropower_via_newtonschulz(ahead, group["ns_coefficients"], group["ns_steps"], group["eps"])
                weight.mul_(1 - group["lr"] * group["weight_decay"])
                rate = _adjust_lr(group["lr"], group["adjust_lr_fn"], weight.shape)
                weight.add_(part(ahead, weight), alpha=-rate)


def make_optimisers(model: nn.Module, settings: OptimiserSettings, lr: float) -> list[Optimizer]:
    """The optimisers of a model; each group keeps its peak rate under `peak`."""
    hidden = [weight for name, weight in model.named_parameters() if _is_hidden_matrix(name, weight)]
    if settings.kind == "adamw":
        hidden = []
    taken = {id(weight) for weight in hidden}
    rest = [weight for weight in model.parameters() if id(weight) not in taken and weight.requires_grad]
    optimisers: list[Optimizer] = [
        torch.optim.AdamW(
            rest, lr=lr, betas=(settings.beta1, settings.beta2), weight_decay=settings.weight_decay, fused=True
        )
    ]
    if hidden:
        rate = lr * settings.muon_ratio
        muon = ShardedMuon if isinstance(hidden[0], DTensor) else torch.optim.Muon
        optimisers.append(muon(hidden, lr=rate, momentum=MOMENTUM, weight_decay=settings.weight_decay))
    for optimiser in optimisers:
        for group in optimiser.param_groups:
            group["peak"] = group["lr"]
    return optimisers


def set_rate(optimisers: list[Optimizer], factor: float) -> None:
    """Set every learning rate to `factor` of its peak."""
    for optimiser in optimisers:
        for group in optimiser.param_groups:
            group["lr"] = group["peak"] * factor


def _is_hidden_matrix(name: str, weight: nn.Parameter) -> bool:
    """Weights of the layers with two dimensions: neither embeddings, heads, norms nor biases."""
    return weight.ndim == 2 and weight.requires_grad and any(part in name for part in (".layers.", ".layer."))
