"""ModernBERT (Warner et al. 2024), with global attention in every layer: pre-norm, rotary positions, GeGLU."""

from transformers import ModernBertConfig

from stages.nets.settings import ModelSettings
from stages.nets.vocabulary import Vocabulary


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
        initializer_range=settings.init_std,
        attention_dropout=settings.dropout,
        embedding_dropout=settings.dropout,
        mlp_dropout=settings.dropout,
        sparse_prediction=True,  # logits only where a token is masked
        classifier_pooling="mean",
        pad_token_id=vocabulary.pad,
        bos_token_id=vocabulary.cls,
        eos_token_id=vocabulary.sep,
        cls_token_id=vocabulary.cls,
        sep_token_id=vocabulary.sep,
    )
