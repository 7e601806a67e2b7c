"""The memory of tuning by the formulas of a published study of parameter-efficient tuning, as it states them.

Symbols: N parameters, v tokens in the vocabulary, d layers of size h and inner size h′, a heads, b examples of l
tokens; N_ad parameters in adapters of width h_ad. Everything is float32, with AdamW's two moments. Estimates do not
use these formulas: they assume that attention keeps its weights, which a fused kernel does not; and they leave out
embeddings, head, the norms' statistics, temporary tensors, and what the backward pass needs in the frozen layers
above the lowest adapter: queries, keys and values, attention's weights and dropout masks, inputs of the norms and of
the activation.
"""

from dataclasses import dataclass

from transformers import PreTrainedConfig, RobertaConfig

from retrace.estimates.memory import Needs
from retrace.finetuning.method import Method


@dataclass(frozen=True)
class Memory:
    """Bytes as a function of batch b and length l: constant + per_token·bl + per_token_pair·bl²."""

    constant: int
    per_token: int
    per_token_pair: int

    def at(self, batch: int, length: int) -> int:
        """Bytes for a batch of examples of this length."""
        return self.constant + batch * length * (self.per_token + length * self.per_token_pair)


def full_memory(parameters: int, config: PreTrainedConfig) -> Memory:
    """Tuning every weight: 16N + d(34blh + 9bal² + 8blh′)."""
    layers, hidden, inner = config.num_hidden_layers, config.hidden_size, config.intermediate_size
    return Memory(16 * parameters, layers * (34 * hidden + 8 * inner), layers * 9 * config.num_attention_heads)


def adapter_memory(parameters: int, added: int, config: PreTrainedConfig, width: int) -> Memory:
    """Tuning adapters: 4N + 16N_ad + 2d(4blh + 8bl·h_ad)."""
    per_token = 2 * config.num_hidden_layers * (4 * config.hidden_size + 8 * width)
    return Memory(4 * parameters + 16 * added, per_token, 0)


def formula_memory(method: Method, config: PreTrainedConfig, needs: Needs) -> Memory | None:
    """What the formula for a method gives for a model; None if the study has none."""
    if method.file in ("full", "scratch"):
        return full_memory(needs.parameters, config)
    if method.file != "adapter":
        return None
    width = max(1, config.hidden_size // getattr(method.settings, "reduction", 1))
    return adapter_memory(needs.parameters - needs.trained, needs.trained, config, width)


# The study's example, as RoBERTa, which is what it tunes, and the figures printed for it.
EXAMPLE = RobertaConfig(
    vocab_size=50_000, hidden_size=1920, intermediate_size=7680, num_hidden_layers=64, num_attention_heads=32
)
EXAMPLE_WIDTH = 120  # of its adapters
EXAMPLE_PARAMETERS = 3 * 10**9  # as it rounds them
UNIT = 10**6  # bytes; the study says MiB


def example_memory() -> dict[str, Memory]:
    """The example's memory by method, with N as the study rounds it."""
    added = 4 * EXAMPLE.num_hidden_layers * EXAMPLE.hidden_size * (EXAMPLE_WIDTH + 1)  # N_ad: 4dh·h_ad + 4dh
    adapter = adapter_memory(EXAMPLE_PARAMETERS, added, EXAMPLE, EXAMPLE_WIDTH)
    return {"full": full_memory(EXAMPLE_PARAMETERS, EXAMPLE), "adapter": adapter}
