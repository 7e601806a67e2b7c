"""Memory of fine-tuning by the formulas of a published study of parameter-efficient tuning, as it states them.

Its symbols: N parameters, v tokens in the vocabulary, d layers of size h and inner size h′, a heads, b examples of l
tokens; N_ad parameters in adapters of width h_ad. All is float32, with AdamW's two moments. `QUESTIONABLE` is why
`retrace.estimates.memory` counts rather than follows them.
"""

from dataclasses import dataclass

from transformers import PreTrainedConfig, RobertaConfig

from retrace.estimates.memory import Needs
from retrace.finetuning.method import Method

FULL = "16N + d(34blh + 9bal² + 8blh′)"
ADAPTER = "4N + 16N_ad + 2d(4blh + 8bl·h_ad)"
PARAMETERS = "vh + d(4h² + 2hh′ + 4h)"
ADAPTER_PARAMETERS = "4dh·h_ad + 4dh"
QUESTIONABLE = (
    "With adapters the gradient passes through the frozen layers down to the lowest adapter. What is needed for that "
    "(queries, keys and values, attention's weights and dropout masks, inputs of the norms and of the activation) is "
    "left out; only the inputs of the frozen matrices can go. The saving is far smaller than the formulas say.",
    "Attention is taken to keep its weights: with a fused kernel the term in l² is gone.",
    "Embeddings, the head, the statistics of the norms and temporary tensors are left out.",
    "The example's figures are called MiB and are in megabytes of 10⁶ bytes, with N rounded to 3·10⁹ where its own "
    "formula gives less.",
)


@dataclass(frozen=True)
class Memory:
    """Bytes that grow with batch b and length l: constant + per_token·bl + per_token_pair·bl²."""

    constant: int
    per_token: int
    per_token_pair: int

    def at(self, batch: int, length: int) -> int:
        """Bytes for a batch of so many examples of so many tokens."""
        return self.constant + batch * length * (self.per_token + length * self.per_token_pair)


def parameters(config: PreTrainedConfig) -> int:
    """N: `PARAMETERS`."""
    h, inner = config.hidden_size, config.intermediate_size
    return config.vocab_size * h + config.num_hidden_layers * (4 * h * h + 2 * h * inner + 4 * h)


def adapter_parameters(config: PreTrainedConfig, width: int) -> int:
    """N_ad: `ADAPTER_PARAMETERS`."""
    return 4 * config.num_hidden_layers * config.hidden_size * (width + 1)


def full_memory(parameters: int, config: PreTrainedConfig) -> Memory:
    """Tuning every weight: `FULL`."""
    d = config.num_hidden_layers
    per_token = d * (34 * config.hidden_size + 8 * config.intermediate_size)
    return Memory(16 * parameters, per_token, 9 * d * config.num_attention_heads)


def adapter_memory(parameters: int, added: int, config: PreTrainedConfig, width: int) -> Memory:
    """Tuning adapters: `ADAPTER`."""
    per_token = 2 * config.num_hidden_layers * (4 * config.hidden_size + 8 * width)
    return Memory(4 * parameters + 16 * added, per_token, 0)


def formula_memory(method: Method, config: PreTrainedConfig, needs: Needs) -> tuple[str, Memory] | None:
    """The formula for a method and its value for a model; None where the study has none."""
    if method.file in ("full", "scratch"):
        return FULL, full_memory(needs.parameters, config)
    if method.file != "adapter":
        return None
    width = max(1, config.hidden_size // getattr(method.settings, "reduction", 1))
    return ADAPTER, adapter_memory(needs.parameters - needs.trained, needs.trained, config, width)


@dataclass(frozen=True)
class Equation:
    """An equation of an encoder layer, and what the study says the backward pass needs of it."""

    number: int
    text: str
    kept: str
    hidden: int  # bytes for each of b·l·h
    pairs: int  # for each of b·a·l²
    inner: int  # for each of b·l·h′


# Together they are what `FULL` says of a layer: 34blh + 9bal² + 8blh′.
EQUATIONS = (
    Equation(1, "headᵢ = Dropout(Softmax(Wᵢ^Q x (Wᵢ^K x)ᵀ / √d_k + mask)) Wᵢ^V x",
             "x, W^K x, W^Q x, W^V x; the products, their softmax and its dropout mask", 16, 9, 0),
    Equation(2, "x₁ = Concat(head₁, …, head_a) W^O", "the heads", 4, 0, 0),
    Equation(3, "x₂ = LayerNorm(Dropout(x₁) + x)", "the dropout mask, the norm's input", 5, 0, 0),
    Equation(4, "x₃ = W₂ GeLU(W₁ x₂)", "x₂, W₁ x₂ and its GeLU", 4, 0, 8),
    Equation(5, "x₄ = LayerNorm(Dropout(x₃) + x₂)", "the dropout mask, the norm's input", 5, 0, 0),
)  # fmt: skip


# The study's example as RoBERTa, which is what it tunes, and the figures printed for it.
EXAMPLE = RobertaConfig(
    vocab_size=50_000, hidden_size=1920, intermediate_size=7680, num_hidden_layers=64, num_attention_heads=32
)
EXAMPLE_WIDTH = 120  # of its adapters
EXAMPLE_PARAMETERS = 3 * 10**9  # as it rounds them
UNIT = 10**6  # bytes; it says MiB
EXAMPLE_PRINTED = {"full": "4.8·10⁴ + 1.84·10⁻²·bl² + 8.11·bl", "adapter": "1.3·10⁴ + 1.11·bl"}
CLAIM = 3 / 4  # the share of the memory that adapters are said to save at least


def example_memory(parameters: int = EXAMPLE_PARAMETERS) -> dict[str, Memory]:
    """The example's memory by method, with N rounded as in the study or given."""
    added = adapter_parameters(EXAMPLE, EXAMPLE_WIDTH)
    adapter = adapter_memory(parameters, added, EXAMPLE, EXAMPLE_WIDTH)
    return {"full": full_memory(parameters, EXAMPLE), "adapter": adapter}
