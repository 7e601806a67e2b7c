"""What a language model loses on held-out text, document by document."""

import math
from collections.abc import Iterable

import numpy as np
import torch
from torch.nn import functional

from stages.harness.device import Device
from stages.harness.errors import InputError
from stages.metrics.perplexity import Losses
from stages.training.language import IGNORED, Answers, HeldOut, Labelled, asked_scores


@torch.no_grad()
def document_losses(model: Answers, batches: Iterable[HeldOut], lengths: np.ndarray, device: Device) -> Losses:
    """The losses on documents of `lengths` (D,), one after the other in the stream; processes share the batches.

    A token belongs to the document that it stands in, wherever blocks begin and end. The mean is that of
    `mean_loss`, to the bit.
    """
    ends = np.cumsum(lengths)
    total, sums, asked = 0.0, np.zeros(len(ends)), np.zeros(len(ends))
    for batch, counts in device.dealt(batches):
        with device.autocast():
            loss, losses = _losses(model, batch.to(device.place))
        if counts:
            documents = np.searchsorted(ends, batch.places[batch.labels != IGNORED].numpy(), side="right")
            total += loss
            sums += np.bincount(documents, losses, minlength=len(ends))
            asked += np.bincount(documents, minlength=len(ends))
    return summed_losses(total, sums, asked, device)


def summed_losses(total: float, sums: np.ndarray, asked: np.ndarray, device: Device) -> Losses:
    """What all processes found together: the loss of all tokens, and loss and tokens of each document, (D,).

    The mean is no number where nothing was asked. Raises InputError where the loss is none although something was.
    """
    total, *of_documents = device.summed([total, *sums, *asked])
    if not math.isfinite(total):
        raise InputError(f"the model's loss on held-out text is {total}; its weights may not be finite")
    sums, asked = np.array(of_documents).reshape(2, -1)
    return Losses(total / asked.sum() if asked.any() else math.nan, sums, asked)


def _losses(model: Answers, batch: Labelled) -> tuple[float, np.ndarray]:
    """The loss summed over the labels, and that of each, (N,)."""
    scores, labels = asked_scores(model, batch)
    each = functional.cross_entropy(scores, labels, reduction="none")
    return functional.cross_entropy(scores, labels, reduction="sum").item(), each.cpu().numpy()
