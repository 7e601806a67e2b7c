"""Muon on the hidden matrices (Jordan et al. 2024), AdamW (Loshchilov and Hutter 2019) on the rest."""

import torch
from torch import nn
from torch.optim import Optimizer

from stages.training.muon import Muon
from stages.training.settings import OptimiserSettings


def make_optimisers(model: nn.Module, settings: OptimiserSettings, lr: float, bf16: bool = False) -> list[Optimizer]:
    """The optimisers of a model, each group with its peak rate under `peak`; `bf16`: Muon multiplies in bfloat16.

    Raises ValueError where the model trains no weights.
    """
    hidden = [weight for name, weight in model.named_parameters() if _is_hidden_matrix(name, weight)]
    if settings.kind == "adamw":
        hidden = []
    taken = {id(weight) for weight in hidden}
    rest = [weight for weight in model.parameters() if id(weight) not in taken and weight.requires_grad]
    optimisers: list[Optimizer] = []
    if rest or not hidden:  # of a language model tuned by LoRA, all that is trained are hidden matrices
        betas = (settings.beta1, settings.beta2)
        optimisers.append(torch.optim.AdamW(rest, lr, betas, weight_decay=settings.weight_decay, fused=True))
    if hidden:
        rate = lr * settings.muon_ratio
        precision = torch.bfloat16 if bf16 else torch.float32
        optimisers.append(Muon(hidden, rate, settings.weight_decay, precision, settings.muon_steps))
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
