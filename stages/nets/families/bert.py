"""BERT (Devlin et al. 2018): post-norm, learnt positions and segments."""

from torch import Tensor
from transformers import BertConfig, BertForMaskedLM, PreTrainedConfig

from stages.nets.settings import ModelSettings
from stages.nets.vocabulary import Vocabulary

OBJECTIVE = "masked"


def make_config(settings: ModelSettings, vocabulary: Vocabulary) -> BertConfig:
    """The transformers config of this size."""
    return BertConfig(
        vocab_size=vocabulary.size,
        hidden_size=settings.hidden_size,
        intermediate_size=settings.intermediate_size,
        num_hidden_layers=settings.layers,
        num_attention_heads=settings.heads,
        max_position_embeddings=settings.max_length,
        initializer_range=settings.init_std,
        hidden_dropout_prob=settings.dropout,
        attention_probs_dropout_prob=settings.dropout,
        pad_token_id=vocabulary.pad,
    )


def longest_input(config: PreTrainedConfig) -> int:
    """The most tokens the model reads."""
    return config.max_position_embeddings


def language_head(model: BertForMaskedLM, hidden: Tensor) -> Tensor:
    """Hidden states (N, C) → scores over the vocabulary (N, V)."""
    return model.cls(hidden)
