"""BERT (Devlin et al. 2018): post-norm, learned positions and segments."""

from torch import Tensor
from transformers import BertConfig, BertForMaskedLM, BertForPreTraining

from retrace.models.attention import PostNormLastLayer
from retrace.models.settings import ModelSettings
from retrace.tokens.tokenizer import Vocabulary

OBJECTIVE = "masked"
# Names within a layer: attention matrices, and the output matrices of attention and feed-forward parts.
ATTENTION = ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense")
OUTPUTS = ("attention.output.dense", "output.dense")
LastLayer = PostNormLastLayer

PAIRS_ONLY = (".pooler.", ".seq_relationship.")  # weights that are trained by next-sentence prediction only


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


def before_vocabulary(model: BertForMaskedLM | BertForPreTraining, hidden: Tensor) -> Tensor:
    """Hidden states (N, C) → the input of the output embedding, (N, C)."""
    return model.cls.predictions.transform(hidden)


def relation_head(model: BertForPreTraining, pooled: Tensor) -> Tensor:
    """The pooled first token (N, C) → scores (N, 2): B follows A, or it does not."""
    return model.cls.seq_relationship(pooled)
