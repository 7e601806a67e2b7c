"""How a model is optimised, the same knobs for pretraining and fine-tuning."""

from dataclasses import dataclass
from typing import Literal

from retrace.core.settings import require


@dataclass(frozen=True)
class OptimiserSettings:
    """The optimiser and its schedule; the peak learning rate comes with it."""

    kind: Literal["muon", "adamw"] = "muon"  # muon: on the hidden matrices, AdamW on the rest
    muon_ratio: float = 20.0  # Muon's learning rate over AdamW's
    muon_steps: int = 5  # of its Newton-Schulz iteration; fewer are faster and leave small singular values smaller
    beta1: float = 0.9
    beta2: float = 0.98
    weight_decay: float = 0.01
    warmup: float = 0.05  # share of the steps in which the rate rises from 0
    flat: float = 0.5  # share of the steps after which it falls, linearly, to 0
    clip: float = 1.0  # largest norm of the gradient
    spike: float | None = 2.0  # stop where the loss, averaged over 20 updates, rises by so many nats; null: never

    def __post_init__(self) -> None:
        require(self.muon_ratio > 0, "muon_ratio", self.muon_ratio, "expected a number above 0")
        require(self.muon_steps > 0, "muon_steps", self.muon_steps, "expected a whole number above 0")
        for field in ("beta1", "beta2"):
            require(0 <= getattr(self, field) < 1, field, getattr(self, field), "expected 0 up to 1")
        require(self.weight_decay >= 0, "weight_decay", self.weight_decay, "expected 0 or more")
        require(0 <= self.warmup <= 1, "warmup", self.warmup, "expected 0 to 1")
        require(self.warmup <= self.flat <= 1, "flat", self.flat, f"expected warmup ({self.warmup}) to 1")
        require(self.clip > 0, "clip", self.clip, "expected a number above 0")
        require(self.spike is None or self.spike > 0, "spike", self.spike, "expected a number above 0, or null")
