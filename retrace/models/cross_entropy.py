"""The loss of a language model's head, with its gradient computed on the way.

A head's scores are its largest tensor: of every position, one for each entry of the vocabulary. PyTorch keeps them for
the backward pass, in two precisions; here only the gradients of states and weights are kept. PyTorch's own
`linear_cross_entropy` does so too, but takes longer on a CPU than the head and its loss apart.
"""

from typing import Any, cast

import torch
from torch import Tensor, nn

from retrace.models.precision import product_precision


def head_loss(hidden: Tensor, head: nn.Linear, targets: Tensor) -> Tensor:
    """The negative log-likelihood of N targets by a linear head, summed, in nats.

    Hidden states (N, C), targets (N,), in a compiled model also -100 for none. Products have autocast's precision.
    """
    precision = product_precision(hidden.device)
    return cast(Tensor, _HeadLoss.apply(hidden, head.weight, head.bias, targets, precision))


class _HeadLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, precision: torch.dtype
    ) -> Tensor:
        hidden, weight, right = hidden.to(precision), weight.to(precision), targets[:, None]
        # Batches are padded for compiled models only, which leave targets out within another pass over the scores.
        has_target, right = (right >= 0, right.clamp(min=0)) if torch.compiler.is_compiling() else (None, right)
        scores = hidden @ weight.T if bias is None else torch.addmm(bias.to(precision), hidden, weight.T)
        logs = scores.float().log_softmax(1)
        of_targets = logs.gather(1, right)
        loss = -(of_targets if has_target is None else of_targets * has_target).sum()
        change = logs.exp_()  # the gradient of the scores: their probabilities, less 1 for the target
        change.scatter_(1, right, change.gather(1, right) - 1)
        if has_target is not None:
            change = change * has_target
        of_bias = None if bias is None else change.sum(0)
        change = change.to(precision)
        ctx.save_for_backward(change @ weight, change.T @ hidden, of_bias)
        return loss

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        scaled = [None if saved is None else saved.float() * gradients[0] for saved in ctx.saved_tensors]
        return (*scaled, None, None)
