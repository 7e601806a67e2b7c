"""A task to fine-tune on, and a model's outputs for its examples."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
import torch
from accelerate.utils import gather_object
from torch import Tensor, nn

from retrace.compute.device import Device
from retrace.models.heads import Head
from retrace.results.grid import Kind

Example = TypeVar("Example")
Result = TypeVar("Result")
Tensors = dict[str, Tensor]
Row = dict[str, Any]


class Task(Protocol[Example]):
    """A labelled data set, and how a model is trained and scored on it.

    `reads` says what the head reads of a frozen body's output: one vector per text, or one per token. Examples are then
    dataclasses whose `ids` may be replaced by indices of these vectors. None: these vectors cannot be computed once, as
    the head reads more, or they change in training.
    """

    name: str
    kind: Kind
    head: Head
    classes: tuple[str, ...] = ()  # of a classifier, by number; empty for other heads
    has_test: bool  # whether there is a test split besides `dev`
    reads: Literal["text", "tokens"] | None = None

    def examples(self, part: str) -> list[Example]:
        """The encoded examples of `train`, `dev` or, if there is one, `test`."""
        ...

    def length(self, example: Example) -> int:
        """Tokens of an example."""
        ...

    def is_truncated(self, example: Example) -> bool:
        """Whether the model reads less than the whole text, as it is longer than the task's maximum."""
        return False

    def wrap(self, model: nn.Module) -> nn.Module:
        """The model for `scores`, made from one with the task's head: by default that model itself."""
        return model

    def collate(self, examples: Sequence[Example], length: int | None = None) -> Tensors:
        """The examples as tensors, padded to the longest; or to `length`, with few shapes, for a compiled model."""
        ...

    def scores(self, model: nn.Module, batch: Tensors) -> Tensor:
        """The model's scores for a batch, one row per example."""
        ...

    def logits(self, scores: Tensor) -> Tensor:
        """The scores as `divergence` takes them: logits, over whose last dimension a softmax is taken."""
        return scores

    def targets(self, example: Example) -> int:
        """The number of targets that an example's loss is summed over: 1, or the gold answer's tokens in generation."""
        return 1

    def loss(self, scores: Tensor, batch: Tensors) -> Tensor:
        """The loss summed over the targets, in nats."""
        ...

    def rows(self, examples: Sequence[Example], scores: Sequence[np.ndarray]) -> list[Row]:
        """The model's predictions, one row per text or question, in the order of the data."""
        ...


def predict(
    task: Task[Example], model: nn.Module, examples: Sequence[Example], batch_size: int, device: Device
) -> tuple[list[np.ndarray], float]:
    """The scores of every example, in order and without padding, and the mean loss per target in nats."""

    def score(batch: Tensors) -> tuple[Tensor, float]:
        with device.autocast():
            scores = task.scores(model, batch)
        return scores, task.loss(scores, batch).item()

    rows, losses = outputs(task, examples, batch_size, device, score)
    return rows, sum(losses) / sum(map(task.targets, examples))


@torch.no_grad()
def outputs(
    task: Task[Example], examples: Sequence[Example], batch_size: int, device: Device,
    compute: Callable[[Tensors], tuple[Tensor, Result]],
) -> tuple[list[np.ndarray], list[Result]]:  # fmt: skip
    """The outputs of `compute` for batches of similar length, which the processes share.

    Its tensors are returned as one row per example, in order and without padding; its results as one per batch.
    """
    order = sorted(range(len(examples)), key=lambda index: task.length(examples[index]))
    batches = [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
    found: list[tuple[int, np.ndarray]] = []
    results: list[Result] = []
    for indices, counts in device.share_batches(batches):
        batch = moved(task.collate([examples[index] for index in indices]), device)
        tensor, result = compute(batch)
        if not counts:
            continue
        results.append(result)
        for index, row in zip(indices, tensor.float().cpu().numpy(), strict=True):
            found.append((index, row[: task.length(examples[index])] if row.ndim > 1 else row))
    found, results = gather_object(found), gather_object(results)
    found.sort(key=lambda item: item[0])
    return [row for _, row in found], results


def moved(tensors: Tensors, device: Device) -> Tensors:
    """The tensors on a device."""
    return {name: device.send(tensor) for name, tensor in tensors.items()}
