"""Features of a frozen body (the part of its output that the head reads), computed once for all epochs.

As in the feature-based approach of Devlin et al. 2018, section 5.3, a frozen body has no dropout.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Generic, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.modeling_outputs import BaseModelOutputWithPoolingAndCrossAttentions

from retrace.compute.device import Device
from retrace.finetuning.method import has_added
from retrace.finetuning.task import Example, Task, Tensors, outputs
from retrace.models.heads import in_body, text_vector
from retrace.training.throughput import ProductOperations

MOST = 2**32  # bytes of features; if they take more, the body computes them anew for every batch

Parts = Mapping[str, Sequence[Example]]


@dataclass(frozen=True)
class Prepared(Generic[Example]):
    """The splits as training reads them, and the time and FLOPs of computing the training split's features, if any."""

    parts: Parts[Example]
    seconds: float = 0.0
    flops: float = 0.0  # of matrix products, over all processes


class Lookup(nn.Module):
    """Replaces a body: its input ids are indices of features, which it returns as the last layer's output."""

    def __init__(self, features: Tensor, pooler: nn.Module | None) -> None:
        super().__init__()
        self._features = (features,)  # not a buffer, which processes would synchronize
        self.pooler = pooler  # BERT's, which belongs to the head

    def forward(self, input_ids: Tensor, **_: Any) -> BaseModelOutputWithPoolingAndCrossAttentions:
        """Indices (B, T) → hidden states (B, T, C)."""
        (features,) = self._features
        numbers = input_ids.clamp(max=len(features) - 1)  # the tokenizer's padding id may be larger
        hidden: Any = functional.embedding(numbers, features)
        pooled = None if self.pooler is None else self.pooler(hidden)
        return BaseModelOutputWithPoolingAndCrossAttentions(last_hidden_state=hidden, pooler_output=pooled)


@contextmanager
def computed_once(
    task: Task[Example], model: nn.Module, parts: Parts[Example], batch_size: int, device: Device
) -> Iterator[Prepared[Example]]:
    """Yield the splits with feature indices in place of token ids, while a `Lookup` replaces the model's body.

    Nothing is replaced if something in the body is trained, a method added weights, the head reads more than the last
    layer's output, the features would take more than MOST bytes, or the weights are sharded. Every process computes a
    share of the features and holds all of them.
    """
    body = cast(PreTrainedModel, model if isinstance(model, PreTrainedModel) else model.body)
    base = cast(nn.Module, body.base_model)
    trained = any(weight.requires_grad for name, weight in body.named_parameters() if in_body(body, name))
    is_frozen = not (trained or has_added(body))  # what a method adds beside the body may change its output
    if is_frozen:
        base.register_forward_pre_hook(_without_dropout)
    vectors = sum(_vectors(task, example) for part in parts.values() for example in part)
    size = vectors * body.config.hidden_size * torch.float32.itemsize
    if not is_frozen or task.reads is None or device.sharded or size > MOST:
        yield Prepared(parts)
        return
    model.eval()
    features, seconds, flops = [], 0.0, 0.0
    for name, part in parts.items():
        began = time.monotonic()
        with ProductOperations() as operations:
            features.append(_features(task, model, body, part, batch_size, device))
        if name == "train":
            seconds, (flops,) = time.monotonic() - began, device.all_reduce_sum([operations.total])
    lookup = Lookup(torch.cat(features).to(device.torch_device), getattr(base, "pooler", None))
    features.clear()  # they would be held beside their copy until training ends
    setattr(body, body.base_model_prefix, lookup)
    try:
        yield Prepared(_numbered(task, parts), seconds, flops)
    finally:
        setattr(body, body.base_model_prefix, base)


def _without_dropout(base: nn.Module, _: Any) -> None:
    """Put the body in evaluation mode, except layers that are computed again, which they are only in training mode."""
    if base.training:
        base.eval()
        for layer in base.modules():
            if isinstance(layer, GradientCheckpointingLayer):
                layer.training = layer.gradient_checkpointing


def _vectors(task: Task[Example], example: Example) -> int:
    return task.length(example) if task.reads == "tokens" else 1


def _features(
    task: Task[Example], model: nn.Module, body: PreTrainedModel, examples: Sequence[Example], batch_size: int,
    device: Device,
) -> Tensor:  # fmt: skip
    """The features of examples, (N, C), from forward passes in the same batches as in `predict`."""
    seen: list[Tensor] = []
    hook = cast(nn.Module, body.base_model).register_forward_hook(lambda *call: seen.append(call[2].last_hidden_state))

    def compute(batch: Tensors) -> tuple[Tensor, None]:
        with device.autocast():
            task.scores(model, batch)
            hidden = seen.pop()
            if task.reads == "text":
                hidden = text_vector(body.config, hidden, batch["ids"], batch.get("mask"))
        return hidden, None

    rows, _ = outputs(task, examples, batch_size, device, compute)
    hook.remove()
    return torch.from_numpy(np.vstack(rows))


def _numbered(task: Task[Example], parts: Parts[Example]) -> Parts[Example]:
    """The examples with the indices of their features in place of token ids."""
    first, numbered = 0, {}
    for name, part in parts.items():
        numbered[name] = []
        for example in part:
            numbers = np.arange(first, first + _vectors(task, example))
            numbered[name].append(replace(cast(Any, example), ids=numbers))
            first += len(numbers)
    return numbered
