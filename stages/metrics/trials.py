"""What a method said from one seed, epoch by epoch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from stages.metrics.outcomes import Answered, Classified

Outcome = TypeVar("Outcome", Classified, Answered)


@dataclass(frozen=True)
class Epoch(Generic[Outcome]):
    """Losses in nats and decisions after an epoch; epoch 0 is before training and has no training loss."""

    number: int
    training_loss: float | None
    validation_loss: float
    outcome: Outcome


@dataclass(frozen=True)
class Trial(Generic[Outcome]):
    """A method from a seed."""

    method: str
    seed: int
    epochs: tuple[Epoch[Outcome], ...]

    @property
    def before(self) -> Epoch[Outcome]:
        """The model before training."""
        return self.epochs[0]

    @property
    def best(self) -> Epoch[Outcome]:
        """The epoch that is scored."""
        return best_epoch(self.epochs)


class Validated(Protocol):
    """An epoch of which a loss is known."""

    @property
    def validation_loss(self) -> float:
        """In nats."""
        ...


Known = TypeVar("Known", bound=Validated)


def best_epoch(epochs: Sequence[Known]) -> Known:
    """The trained epoch with the lowest validation loss, the first of equals."""
    return min(epochs[1:], key=lambda epoch: epoch.validation_loss)
