"""Parameters of BERT (Devlin et al. 2018): biases everywhere, two norms a layer, a pooler for pairs of sentences."""

from transformers import PreTrainedConfig

from retrace.estimates.closed_form import Term


def terms(config: PreTrainedConfig) -> list[Term]:
    """V tokens, P positions, S segments, L layers of size h and inner size f."""
    h, f, layers = config.hidden_size, config.intermediate_size, config.num_hidden_layers
    return [
        Term("word embeddings", "Vh", config.vocab_size * h, r"embeddings\.word_embeddings"),
        Term("position embeddings", "Ph", config.max_position_embeddings * h, r"embeddings\.position_embeddings"),
        Term("segment embeddings", "Sh", config.type_vocab_size * h, r"embeddings\.token_type_embeddings"),
        Term("norm of the embeddings", "2h", 2 * h, r"embeddings\.LayerNorm"),
        Term("attention", "L(4h² + 4h)", layers * (4 * h * h + 4 * h), r"attention\.(self|output\.dense)"),
        Term(
            "feed-forward", "L(2hf + f + h)", layers * (2 * h * f + f + h), r"layer\.\d+\.(intermediate|output)\.dense"
        ),
        Term("norms of the layers", "4Lh", 4 * layers * h, r"layer\..*LayerNorm"),
        Term("pooler", "h² + h", h * h + h, r"pooler"),
    ]
