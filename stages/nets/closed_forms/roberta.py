"""Parameters of RoBERTa (Liu et al. 2019): BERT's without segments and pooler."""

from transformers import PreTrainedConfig

from stages.nets.closed_form import Term


def terms(config: PreTrainedConfig) -> list[Term]:
    """V tokens, P positions (two of them for padding), L layers of size h and inner size f."""
    h, f, layers = config.hidden_size, config.intermediate_size, config.num_hidden_layers
    return [
        Term("word embeddings", "Vh", config.vocab_size * h, r"embeddings\.word_embeddings"),
        Term("position embeddings", "Ph", config.max_position_embeddings * h, r"embeddings\.position_embeddings"),
        Term("norm of the embeddings", "2h", 2 * h, r"embeddings\.LayerNorm"),
        Term("attention", "L(4h² + 4h)", layers * (4 * h * h + 4 * h), r"attention\.(self|output\.dense)"),
        Term(
            "feed-forward", "L(2hf + f + h)", layers * (2 * h * f + f + h), r"layer\.\d+\.(intermediate|output)\.dense"
        ),
        Term("norms of the layers", "4Lh", 4 * layers * h, r"layer\..*LayerNorm"),
    ]
