"""Memory of fine-tuning by the formulas of a published study of parameter-efficient tuning, as it states them.

Its symbols: N parameters, d layers of size h and inner size h′, a heads, b examples of l tokens; N_ad parameters in
adapters of width h_ad. All is float32, with AdamW's two moments.

What is questionable in them, and why `stages.training.planning` counts rather than follows them:
- With adapters the gradient passes through the frozen layers down to the lowest adapter. What is needed for that
  (queries, keys and values, attention's weights and dropout masks, inputs of the norms and of the activation) is
  left out; only the inputs of the frozen matrices can go. The saving is far smaller than they say.
- Attention is taken to keep its weights: with a fused kernel the term in l² is gone.
- Embeddings, the head, the statistics of the norms and what is held for a moment only are left out.
- The study's example, 4.8e4 + 1.84e-2·bl² + 8.11·bl and 1.3e4 + 1.11·bl "MiB", is in megabytes of 10⁶ bytes,
  with N rounded to 3e9 where its own formula gives 2.93e9. In MiB the first is 4.5e4 + 1.76e-2·bl² + 7.73·bl.
"""

from dataclasses import dataclass

from transformers import PreTrainedConfig

FULL = "16N + d(34blh + 9bal² + 8blh′)"
ADAPTER = "4N + 16N_ad + 2d(4blh + 8bl·h_ad)"


@dataclass(frozen=True)
class Shape:
    """What the formulas ask of an encoder."""

    layers: int
    hidden: int
    inner: int
    heads: int

    @classmethod
    def of(cls, config: PreTrainedConfig) -> "Shape":
        """The shape of a model of this config."""
        return cls(config.num_hidden_layers, config.hidden_size, config.intermediate_size, config.num_attention_heads)


def parameters(shape: Shape, vocabulary: int) -> int:
    """N = vh + d(4h² + 2hh′ + 4h)."""
    h = shape.hidden
    return vocabulary * h + shape.layers * (4 * h * h + 2 * h * shape.inner + 4 * h)


def adapter_parameters(shape: Shape, width: int) -> int:
    """N_ad = 4dh·h_ad + 4dh."""
    return 4 * shape.layers * shape.hidden * (width + 1)


def full_bytes(parameters: int, shape: Shape, batch: int, length: int) -> int:
    """Bytes of tuning every weight: `FULL`."""
    kept = 34 * shape.hidden + 9 * shape.heads * length + 8 * shape.inner
    return 16 * parameters + shape.layers * batch * length * kept


def adapter_bytes(parameters: int, added: int, shape: Shape, width: int, batch: int, length: int) -> int:
    """Bytes of tuning adapters: `ADAPTER`."""
    return 4 * parameters + 16 * added + 2 * shape.layers * batch * length * (4 * shape.hidden + 8 * width)
