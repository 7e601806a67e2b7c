"""How many parameters a model has, by name, known without the memory that they would take."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import cast

import torch
from transformers import PreTrainedConfig, PreTrainedModel

from stages.nets.heads import Head, make_model, pretraining_head


@dataclass(frozen=True)
class Count:
    """A parameter of a model; tied ones are one."""

    name: str
    shape: tuple[int, ...]
    is_trained: bool
    is_added: bool  # by the tuning method; the architecture has it not

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return math.prod(self.shape)


def empty_model(head: Head | None, config: PreTrainedConfig, attention: str = "eager") -> PreTrainedModel:
    """A model whose weights have shapes and no values (torch's meta device).

    Without a head it is the one with the family's pretraining head: `body_of` is then what was pretrained. BERT's
    has a pooler, as pairs of sentences were among what it learnt; RoBERTa's has none.
    """
    with torch.device("meta"):
        return make_model(head or pretraining_head(config), config, 0, attention)


def body_of(model: PreTrainedModel) -> PreTrainedModel:
    """The model without its head."""
    return cast(PreTrainedModel, model.base_model)


def count_parameters(
    head: Head | None, config: PreTrainedConfig, tune: Callable[[PreTrainedModel, Head], object]
) -> tuple[PreTrainedModel, list[Count]]:
    """The model after `tune`, without values, and its parameters; without a head where None."""
    model = empty_model(head, config)
    original = {id(weight) for weight in model.parameters()}
    with torch.device("meta"):
        tune(model, head or "language_model")
    shown = body_of(model) if head is None else model
    counts = [
        Count(name, tuple(weight.shape), weight.requires_grad, id(weight) not in original)
        for name, weight in shown.named_parameters()
    ]
    return shown, counts


def total(counts: Iterable[Count]) -> int:
    """All of them."""
    return sum(count.size for count in counts)
