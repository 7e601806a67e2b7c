"""The size of a model trained from scratch."""

from dataclasses import dataclass
from typing import TypedDict

from retrace.core.settings import require


class Shape(TypedDict):
    """What transformers calls the same in the config of every family."""

    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    initializer_range: float


@dataclass(frozen=True)
class ModelSettings:
    """What a model is made of."""

    hidden_size: int
    layers: int
    heads: int  # attention heads; they divide the hidden size
    intermediate_size: int  # of the feed-forward layers
    max_length: int  # positions, in tokens
    dropout: float = 0.0
    init_std: float = 0.02  # standard deviation of the initial weights
    rope_theta: float | None = None  # base of rotary positions, the higher the slower; the family's where absent
    kv_heads: int | None = None  # heads of keys and values (Ainslie et al. 2023); as many as heads where absent

    def __post_init__(self) -> None:
        for field in ("hidden_size", "layers", "heads", "intermediate_size", "max_length"):
            require(getattr(self, field) > 0, field, getattr(self, field), "expected a whole number above 0")
        require(
            self.hidden_size % self.heads == 0, "heads", self.heads, f"it must divide hidden_size ({self.hidden_size})"
        )
        require(
            self.kv_heads is None or (self.kv_heads > 0 and self.heads % self.kv_heads == 0),
            "kv_heads", self.kv_heads, f"it must divide heads ({self.heads})",
        )  # fmt: skip
        require(
            self.rope_theta is None or self.rope_theta > 1, "rope_theta", self.rope_theta, "expected a number above 1"
        )
        require(0 <= self.dropout < 1, "dropout", self.dropout, "expected 0 up to 1")
        require(self.init_std > 0, "init_std", self.init_std, "expected a number above 0")

    @property
    def shape(self) -> Shape:
        """The settings that mean the same in every family, by transformers' names."""
        return {
            "hidden_size": self.hidden_size,
            "intermediate_size": self.intermediate_size,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "initializer_range": self.init_std,
        }
