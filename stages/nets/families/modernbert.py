"""ModernBERT (Warner et al. 2024), with global attention in every layer: pre-norm, rotary positions, GeGLU."""

from torch import Tensor
from transformers import ModernBertConfig, ModernBertForMaskedLM, PreTrainedConfig

from stages.nets.settings import ModelSettings
from stages.nets.vocabulary import Vocabulary

OBJECTIVE = "masked"

# The slowest rotation of the positions. Short blocks leave most of ModernBERT's own 160,000 turning too little
# to tell neighbours apart; small models then learn to attend by position hundreds of steps later.
ROPE_THETA = 1_000.0


def make_config(settings: ModelSettings, vocabulary: Vocabulary) -> ModernBertConfig:
    """The transformers config of this size."""
    return ModernBertConfig(
        vocab_size=vocabulary.size,
        hidden_size=settings.hidden_size,
        intermediate_size=settings.intermediate_size,
        num_hidden_layers=settings.layers,
        num_attention_heads=settings.heads,
        max_position_embeddings=settings.max_length,
        layer_types=["full_attention"] * settings.layers,
        rope_parameters={"full_attention": {"rope_type": "default", "rope_theta": ROPE_THETA}},
        initializer_range=settings.init_std,
        attention_dropout=settings.dropout,
        embedding_dropout=settings.dropout,
        mlp_dropout=settings.dropout,
        classifier_pooling="mean",
        pad_token_id=vocabulary.pad,
        bos_token_id=vocabulary.cls,
        eos_token_id=vocabulary.sep,
        cls_token_id=vocabulary.cls,
        sep_token_id=vocabulary.sep,
    )


def longest_input(config: PreTrainedConfig) -> int:
    """The most tokens the model reads."""
    return config.max_position_embeddings


def language_head(model: ModernBertForMaskedLM, hidden: Tensor) -> Tensor:
    """Hidden states (N, C) → scores over the vocabulary (N, V)."""
    return model.decoder(model.head(hidden))
