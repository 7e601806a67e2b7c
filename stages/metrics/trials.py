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
    kept: bool  # whether it is the one that is scored
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
    def kept(self) -> Epoch[Outcome]:
        """The epoch that is scored."""
        return kept_epoch(self.epochs)


class Chosen(Protocol):
    """An epoch that was kept or not."""

    @property
    def kept(self) -> bool:
        """Whether the model's weights are of this one."""
        ...


Known = TypeVar("Known", bound=Chosen)


def kept_epoch(epochs: Sequence[Known]) -> Known:
    """The one that was kept."""
    (kept,) = (epoch for epoch in epochs if epoch.kept)
    return kept
