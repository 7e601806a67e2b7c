"""BERT (Devlin et al. 2018): post-norm, learnt positions and segments."""

from torch import Tensor
from transformers import BertConfig, BertForMaskedLM, BertForPreTraining, PreTrainedConfig

from retrace.models.settings import ModelSettings
from retrace.tokens.tokenizer import Vocabulary

OBJECTIVE = "masked"
# Within a layer: the matrices of attention, and the last ones of attention and of the feed-forward part.
ATTENTION = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
)
OUTPUTS = ("attention.output.dense", "output.dense")

PAIRS_ONLY = (".pooler.", ".seq_relationship.")  # weights that only learn from pairs of sentences


def make_config(settings: ModelSettings, vocabulary: Vocabulary) -> BertConfig:
    """The transformers config of this size."""
    return BertConfig(
        **settings.shape,
        vocab_size=vocabulary.size,
        max_position_embeddings=settings.max_positions,
        hidden_dropout_prob=settings.dropout,
        attention_probs_dropout_prob=settings.dropout,
        pad_token_id=vocabulary.pad,
    )


def longest_input(config: PreTrainedConfig) -> int:
    """The most tokens the model reads."""
    return config.max_position_embeddings


def language_head(model: BertForMaskedLM | BertForPreTraining, hidden: Tensor) -> Tensor:
    """Hidden states (N, C) → scores over the vocabulary (N, V)."""
    return model.cls.predictions(hidden)


def relation_head(model: BertForPreTraining, pooled: Tensor) -> Tensor:
    """The pooled first token (N, C) → scores of a pair's two relations (N, 2): B follows A, or it does not."""
    return model.cls.seq_relationship(pooled)
