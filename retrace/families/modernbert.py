"""ModernBERT (Warner et al. 2024), with global attention in every layer: pre-norm, rotary positions, GeGLU."""

from typing import Any, Literal

from torch import Tensor
from transformers import ModernBertConfig, ModernBertForMaskedLM

from retrace.models.settings import ModelSettings
from retrace.tokens.tokenizer import Vocabulary

OBJECTIVE = "masked"
# Names within a layer: attention matrices, and the output matrices of attention and feed-forward parts.
ATTENTION = ("attn.Wqkv", "attn.Wo")
OUTPUTS = ("attn.Wo", "mlp.Wo")


def make_config(settings: ModelSettings, vocabulary: Vocabulary) -> ModernBertConfig:
    """The transformers config of this size."""
    rope: dict[Literal["full_attention", "sliding_attention"], dict[str, Any]] | None = None
    if settings.rope_theta is not None:
        rope = {"full_attention": {"rope_type": "default", "rope_theta": settings.rope_theta}}
    return ModernBertConfig(
        **settings.shape,
        vocab_size=vocabulary.size,
        max_position_embeddings=settings.max_positions,
        layer_types=["full_attention"] * settings.layers,
        rope_parameters=rope,
        attention_dropout=settings.dropout,
        embedding_dropout=settings.dropout,
        mlp_dropout=settings.dropout,
        classifier_pooling="mean",
        pad_token_id=vocabulary.pad,
        bos_token_id=vocabulary.begin,
        eos_token_id=vocabulary.end,
        cls_token_id=vocabulary.begin,
        sep_token_id=vocabulary.end,
    )


def language_head(model: ModernBertForMaskedLM, hidden: Tensor) -> Tensor:
    """Hidden states (N, C) → scores over the vocabulary (N, V)."""
    return model.decoder(model.head(hidden))
