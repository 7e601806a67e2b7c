"""What a task is to the fine-tuning loop: examples, batches, a loss and rows of predictions.

A task computes no metric. It writes down what the model answered; `stages.evaluate` scores it.
"""

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
from torch import Tensor, nn

from retrace.models.heads import Head
from retrace.results.grid import Kind

Example = TypeVar("Example")
Tensors = dict[str, Tensor]
Row = dict[str, Any]


class Task(Protocol[Example]):
    """A labelled data set, and how a model is asked and trained on it."""

    name: str
    kind: Kind
    head: Head
    classes: tuple[str, ...]  # of a classifier, by number; empty of another head
    has_test: bool  # whether there is a test split beside `dev`

    def examples(self, part: str) -> list[Example]:
        """The encoded examples of `train`, `dev` or, where there is one, `test`."""
        ...

    def length(self, example: Example) -> int:
        """Tokens of an example."""
        ...

    def wrap(self, model: nn.Module) -> nn.Module:
        """The model that `scores` takes, around one with the task's head."""
        ...

    def collate(self, examples: Sequence[Example]) -> Tensors:
        """Examples padded to the longest, as tensors."""
        ...

    def scores(self, model: nn.Module, batch: Tensors) -> Tensor:
        """The model's scores for a batch, one row an example."""
        ...

    def loss(self, scores: Tensor, batch: Tensors) -> tuple[Tensor, int]:
        """The summed loss in nats, and over how many targets: examples, or tokens of them."""
        ...

    def rows(self, examples: Sequence[Example], scores: Sequence[np.ndarray]) -> list[Row]:
        """What the model answered, one row a sentence or question, in the order of the data."""
        ...
