"""ModernBERT (Warner et al. 2024), with global attention in every layer: pre-norm, rotary positions, GeGLU."""

from typing import Any

from torch import Tensor
from torch.nn.functional import linear
from transformers import ModernBertConfig, ModernBertForMaskedLM, PreTrainedConfig, masking_utils
from transformers.models.modernbert import modeling_modernbert

from retrace.models.attention import attend_at, by_head, rotated, rows_at, signed, turned
from retrace.models.settings import ModelSettings
from retrace.tokens.tokenizer import Vocabulary


def _sliding_mask(config: PreTrainedConfig, **options: Any) -> Tensor | None:
    """The mask of sliding attention, which transformers makes even if no layer has sliding attention."""
    is_used = "sliding_attention" in config.layer_types
    return masking_utils.create_bidirectional_sliding_window_mask(config=config, **options) if is_used else None


modeling_modernbert.create_bidirectional_sliding_window_mask = _sliding_mask  # pyright: ignore[reportPrivateImportUsage]
modeling_modernbert.apply_rotary_pos_emb = rotated
modeling_modernbert.ModernBertRotaryEmbedding.forward = signed(modeling_modernbert.ModernBertRotaryEmbedding.forward)

OBJECTIVE = "masked"
OPTIONS = ("rope_theta",)  # settings of `model` that not every family has
# Names within a layer: attention matrices, and the output matrices of attention and feed-forward parts.
ATTENTION = ("attn.Wqkv", "attn.Wo")
OUTPUTS = ("attn.Wo", "mlp.Wo")
# As in BERT. transformers uses 1/√width, with which a narrow model's initial predictions would be far from uniform.
CLASSIFIER_STD = 0.02


def make_config(settings: ModelSettings, vocabulary: Vocabulary) -> ModernBertConfig:
    """The transformers config of this size."""
    rope: Any = {"full_attention": {"rope_type": "default", "rope_theta": settings.rope_theta}}
    return ModernBertConfig(
        **settings.shape,
        **vocabulary.ids,
        max_position_embeddings=settings.max_positions,
        layer_types=["full_attention"] * settings.layers,
        rope_parameters=None if settings.rope_theta is None else rope,
        attention_dropout=settings.dropout,
        embedding_dropout=settings.dropout,
        mlp_dropout=settings.dropout,
        classifier_pooling="mean",
        cls_token_id=vocabulary.begin,
        sep_token_id=vocabulary.end,
    )


class LastLayer(modeling_modernbert.ModernBertEncoderLayer):
    """The last layer, which can compute scored positions only."""

    def forward(
        self, hidden_states: Tensor, attention_mask: Tensor | None = None, position_embeddings: Any = None,
        scored: Tensor | None = None, **others: Any,
    ) -> Tensor:  # fmt: skip
        """Hidden states (B, T, C) → those after the layer: at positions `scored` (B, M) of the flat batch, or all."""
        if scored is None:
            return super().forward(hidden_states, attention_mask, position_embeddings, **others)
        attention, normed, width = self.attn, self.attn_norm(hidden_states), hidden_states.shape[-1]
        matrices, bias = attention.Wqkv.weight.split((width, 2 * width)), attention.Wqkv.bias
        biases = (None, None) if bias is None else bias.split((width, 2 * width))
        query = by_head(linear(rows_at(normed, scored), matrices[0], biases[0]), attention.head_dim)
        both = linear(normed, matrices[1], biases[1])
        key, value = (by_head(part, attention.head_dim) for part in both.chunk(2, -1))
        cos, sin = position_embeddings
        of_query = (table[0, scored % hidden_states.shape[1]] for table in (cos, sin))
        query, key = turned(query, *of_query), turned(key, cos, sin)
        mixed = attend_at(
            scored, attention, query, key, value, attention_mask, attention.head_dim**-0.5, attention.attention_dropout
        )
        after = rows_at(hidden_states, scored) + attention.out_drop(attention.Wo(mixed))
        return after + self.mlp(self.mlp_norm(after))


def before_vocabulary(model: ModernBertForMaskedLM, hidden: Tensor) -> Tensor:
    """Hidden states (N, C) → the input of the output embedding, (N, C)."""
    return model.head(hidden)
