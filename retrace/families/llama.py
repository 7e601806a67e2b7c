"""Llama (Touvron et al. 2023): pre-norm, rotary positions, SwiGLU; causal."""

from transformers import LlamaConfig
from transformers.models.llama import modeling_llama

from retrace.models.attention import rotated, signed
from retrace.models.settings import ModelSettings
from retrace.tokens.tokenizer import Vocabulary

modeling_llama.apply_rotary_pos_emb = rotated
modeling_llama.LlamaRotaryEmbedding.forward = signed(modeling_llama.LlamaRotaryEmbedding.forward)

OBJECTIVE = "causal"
OPTIONS = ("kv_heads", "rope_theta")  # settings of `model` that not every family has
DROPOUT_LAYERS = False  # none for a task's dropout to set; model.dropout is that of attention weights
# Names within a layer: attention matrices, and the output matrices of attention and feed-forward parts.
ATTENTION = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj")
OUTPUTS = ("self_attn.o_proj", "mlp.down_proj")
ROPE_THETA = 500_000.0  # of Llama 3
# LlamaForQuestionAnswering names its body differently from the other heads; unmapped, the body would stay random.
KEY_MAPPING = {"spans": {r"^model\.": "transformer."}}


def make_config(settings: ModelSettings, vocabulary: Vocabulary) -> LlamaConfig:
    """The transformers config of this size."""
    return LlamaConfig(
        **settings.shape,
        **vocabulary.ids,
        num_key_value_heads=settings.kv_heads or settings.heads,
        rope_parameters={"rope_type": "default", "rope_theta": settings.rope_theta or ROPE_THETA},
        max_position_embeddings=settings.max_positions,
        attention_dropout=settings.dropout,
        tie_word_embeddings=True,
    )
