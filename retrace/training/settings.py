"""Settings of the optimizer and of its learning-rate schedule, for pretraining and fine-tuning."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from retrace.core.settings import Positive, Section, require

Ratio = Annotated[float, Field(ge=0, le=1)]


class OptimizerSettings(Section):
    """The optimizer and its learning-rate schedule; the peak learning rate is a setting of its own."""

    kind: Literal["muon", "adamw"] = Field(
        default="muon", description="muon: Muon on the hidden matrices and AdamW on the rest; adamw: AdamW on all"
    )
    muon_lr_factor: Positive = Field(default=20.0, description="Muon's learning rate divided by AdamW's")
    muon_steps: Literal[3, 5] = Field(
        default=5, description="iterations of Muon's orthogonalization; 3 are faster, but less exact"
    )
    beta2: float = Field(default=0.98, ge=0, lt=1, description="decay of AdamW's second moments; beta1 is fixed at 0.9")
    weight_decay: float = Field(
        default=0.01, ge=0, description="decoupled weight decay, of all weights, including biases and norms"
    )
    warmup_ratio: Ratio = Field(default=0.05, description="share of the steps that linearly warm up the learning rate")
    decay_start: Ratio = Field(
        default=0.5, description="share of the steps after which the learning rate decays linearly to 0"
    )
    max_grad_norm: Positive = Field(default=1.0, description="gradients are clipped to this norm")
    max_loss_rise: Positive | None = Field(
        default=2.0,
        description="stop as diverged if the mean loss of 20 steps rises this many nats above its lowest; null: never",
    )

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        allowed = f"expected at least warmup_ratio ({self.warmup_ratio})"
        require(self.warmup_ratio <= self.decay_start, "decay_start", self.decay_start, allowed)
        return self
