"""How many parameters a model has, by name, counted on the meta device without allocating them."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, cast

import torch
from transformers import PreTrainedConfig, PreTrainedModel

from retrace.core.weights import module_of
from retrace.models.heads import Head, make_model, pretraining_head

Grouping = Literal["parameter", "module", "layer"]

_GROUPS: dict[Grouping, Callable[[str], str]] = {
    "parameter": lambda name: name,
    "module": lambda name: name.rpartition(".")[0] or name,  # a matrix with its bias
    "layer": module_of,
}


@dataclass(frozen=True)
class Count:
    """A parameter of a model; tied weights count once."""

    name: str
    shape: tuple[int, ...]
    is_trained: bool
    is_added: bool  # by the fine-tuning method
    is_head: bool  # outside the pretrained body

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Row:
    """A group of parameters."""

    name: str
    size: int
    trained: int  # of these


def empty_model(head: Head | None, config: PreTrainedConfig, attention: str = "eager") -> PreTrainedModel:
    """A model whose weights have shapes and no values (torch's meta device).

    Without a head it is the one with the family's pretraining head: `body_of` is then what was pretrained. BERT's
    has a pooler, as it was pretrained on pairs of sentences; RoBERTa's has none.
    """
    with torch.device("meta"):
        return make_model(head or pretraining_head(config), config, 0, attention)


def body_of(model: PreTrainedModel) -> PreTrainedModel:
    """The model without its head."""
    return cast(PreTrainedModel, model.base_model)


def count_parameters(
    head: Head | None, config: PreTrainedConfig, tune: Callable[[PreTrainedModel, Head], object]
) -> tuple[PreTrainedModel, list[Count]]:
    """The model after `tune`, on the meta device, and its parameters; of the body alone where `head` is None."""
    model = empty_model(head, config)
    original = {id(weight) for weight in model.parameters()}
    with torch.device("meta"):
        tune(model, head or "language_model")
    body = {id(weight) for weight in body_of(model).parameters()}
    shown = body_of(model) if head is None else model
    counts = [
        Count(name, tuple(weight.shape), weight.requires_grad, id(weight) not in original, id(weight) not in body)
        for name, weight in shown.named_parameters()
    ]
    return shown, counts


def total(counts: Iterable[Count]) -> int:
    """The sum of their sizes."""
    return sum(count.size for count in counts)


def sums(counts: Iterable[Count]) -> dict[str, int]:
    """Parameters in total, trained, frozen, added by the method, and of the head; BERT's pooler is not of the head."""
    counts = list(counts)
    trainable = total(count for count in counts if count.is_trained)
    biases = total(count for count in counts if count.is_head and count.name.endswith("bias"))
    return {
        "total": total(counts),
        "trainable": trainable,
        "frozen": total(counts) - trainable,
        "added": total(count for count in counts if count.is_added),
        "head_weights": total(count for count in counts if count.is_head) - biases,
        "head_biases": biases,
    }


def rows(counts: Iterable[Count], by: Grouping) -> list[Row]:
    """Size and trained size of each parameter, module or layer."""
    found: dict[str, tuple[int, int]] = {}
    for count in counts:
        name = _GROUPS[by](count.name)
        size, trained = found.get(name, (0, 0))
        found[name] = size + count.size, trained + count.size * count.is_trained
    return [Row(name, *sizes) for name, sizes in found.items()]
