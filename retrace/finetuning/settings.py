"""How a model is fine-tuned."""

import dataclasses
from dataclasses import dataclass
from typing import Literal

from retrace.core.errors import InputError
from retrace.core.settings import PARAMS, require
from retrace.training.settings import OptimiserSettings


@dataclass(frozen=True)
class FineTuneSettings:
    """Fine-tuning on labelled examples, in batches of similar length."""

    lr: float  # peak
    epochs: int
    batch_size: int  # examples a step, over all processes
    max_length: int  # tokens an example
    examples: int | None = None  # train on so many examples, drawn from the seed; all where absent
    dropout: float | None = None  # as in pretraining where absent
    keep: Literal["best", "last"] = "best"  # the epoch that counts: of the lowest validation loss, or the last
    optimiser: OptimiserSettings = dataclasses.field(default_factory=OptimiserSettings)

    def __post_init__(self) -> None:
        require(self.lr > 0, "lr", self.lr, "expected a number above 0")
        for field in ("epochs", "batch_size", "max_length"):
            require(getattr(self, field) > 0, field, getattr(self, field), "expected a whole number above 0")
        require(
            self.examples is None or self.examples > 0, "examples", self.examples, "expected a whole number above 0"
        )
        require(self.dropout is None or 0 <= self.dropout < 1, "dropout", self.dropout, "expected 0 up to 1")


def check_length(task: str, given: int, least: int, holds: str) -> None:
    """Raise InputError where a task's inputs are so short that special tokens leave no room for what one `holds`."""
    if given < least:
        raise InputError(
            f"{PARAMS}: {task}.max_length: {given} is not allowed; expected at least {least}, which hold {holds}"
        )
