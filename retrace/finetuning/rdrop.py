"""R-Drop (Liang et al. 2021, section 2.1): two predictions for each example, made to agree under dropout."""

import torch
from torch import Tensor, nn

from retrace.finetuning.task import Task, Tensors


def rdrop_loss(task: Task, model: nn.Module, batch: Tensors, weight: float) -> Tensor:
    """The loss of two predictions and `weight` times their divergence, summed over the targets, in nats.

    The paper adds up the losses of both predictions; its loss is halved here, so that the same learning rates suit it.
    """
    twice = {name: torch.cat([tensor, tensor]) for name, tensor in batch.items()}
    scores = task.scores(model, twice)  # in one pass, in which each row has a dropout mask of its own
    first, second = task.logits(scores).chunk(2)
    return (task.loss(scores, twice) + weight * divergence(first, second)) / 2


def divergence(first: Tensor, second: Tensor) -> Tensor:
    """The mean of KL(first ‖ second) and KL(second ‖ first), summed over the examples, in nats.

    Logits are (B, C), or (B, D, C) for the mean over D distributions of each example.
    """
    p, q = first.float().log_softmax(-1), second.float().log_softmax(-1)
    both = ((p.exp() - q.exp()) * (p - q)).sum(-1)  # both directions added: (B,) or (B, D)
    return both.reshape(len(both), -1).mean(1).sum() / 2
