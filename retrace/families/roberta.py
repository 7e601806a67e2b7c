"""RoBERTa (Liu et al. 2019): BERT's architecture without segments; positions are numbered from after the padding id."""

from torch import Tensor
from torch.nn.functional import gelu
from transformers import PreTrainedConfig, RobertaConfig, RobertaForMaskedLM

from retrace.models.attention import PostNormLastLayer
from retrace.models.settings import ModelSettings
from retrace.tokens.tokenizer import Vocabulary

OBJECTIVE = "masked"
# Names within a layer: attention matrices, and the output matrices of attention and feed-forward parts.
ATTENTION = ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense")
OUTPUTS = ("attention.output.dense", "output.dense")
LastLayer = PostNormLastLayer


def make_config(settings: ModelSettings, vocabulary: Vocabulary) -> RobertaConfig:
    """The transformers config of this size."""
    return RobertaConfig(
        **settings.shape,
        **vocabulary.ids,
        max_position_embeddings=settings.max_positions + vocabulary.pad + 1,
        type_vocab_size=1,
        hidden_dropout_prob=settings.dropout,
        attention_probs_dropout_prob=settings.dropout,
    )


def longest_input(config: PreTrainedConfig) -> int:
    """The most tokens that the model accepts, fewer than its positions."""
    return config.max_position_embeddings - config.pad_token_id - 1


def before_vocabulary(model: RobertaForMaskedLM, hidden: Tensor) -> Tensor:
    """Hidden states (N, C) → the input of the output embedding, (N, C)."""
    return model.lm_head.layer_norm(gelu(model.lm_head.dense(hidden)))
