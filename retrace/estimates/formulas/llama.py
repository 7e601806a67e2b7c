"""Parameters of Llama (Touvron et al. 2023): no biases, three feed-forward matrices, keys and values of fewer heads."""

from transformers import PreTrainedConfig

from retrace.estimates.closed_form import Term


def terms(config: PreTrainedConfig) -> list[Term]:
    """V tokens, L layers of size h and inner size f, a and k heads of size d for queries and for keys and values."""
    h, f, layers = config.hidden_size, config.intermediate_size, config.num_hidden_layers
    d = config.head_dim or h // config.num_attention_heads
    queries, keys = d * config.num_attention_heads, d * config.num_key_value_heads
    return [
        Term("word embeddings", "Vh", config.vocab_size * h, r"embed_tokens"),
        Term("attention", "L(2had + 2hkd)", layers * 2 * h * (queries + keys), r"self_attn\.._proj\."),
        Term("feed-forward", "3Lhf", 3 * layers * h * f, r"mlp\.(gate|up|down)_proj"),
        Term("norms of the layers", "2Lh", 2 * layers * h, r"(input|post_attention)_layernorm"),
        Term("last norm", "h", h, r"\bnorm\."),
    ]
