"""Parameters of ModernBERT (Warner et al. 2024): no biases, gated feed-forward, one norm fewer in layer 0."""

from transformers import PreTrainedConfig

from retrace.estimates.closed_form import Term


def terms(config: PreTrainedConfig) -> list[Term]:
    """V tokens, L layers of size h and inner size f."""
    h, f, layers = config.hidden_size, config.intermediate_size, config.num_hidden_layers
    return [
        Term("word embeddings", "Vh", config.vocab_size * h, r"embeddings\.tok_embeddings"),
        Term("norm of the embeddings", "h", h, r"embeddings\.norm"),
        Term("attention", "4Lh²", 4 * layers * h * h, r"attn\.W(qkv|o)"),
        Term("feed-forward", "3Lhf", 3 * layers * h * f, r"mlp\.W[io]"),
        Term("norms of the layers", "(2L - 1)h", (2 * layers - 1) * h, r"(attn|mlp)_norm"),
        Term("last norm", "h", h, r"final_norm"),
    ]
