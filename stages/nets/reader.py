"""A question-answering model that may also be told which passage words occur in the question.

The extra embedding is the "exact match" feature of Chen et al. 2017 (Reading Wikipedia to Answer
Open-Domain Questions, section 3.2), graded by how rare the word is.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import PreTrainedModel

from stages.nets.heads import takes_segments

FILE = "question_match.safetensors"
# How much larger the match embeddings start than the token embeddings they are added to. From zero, a
# reader takes most of a short training to find out that they say something.
EMPHASIS = 3.0


class Reader(nn.Module):
    """Start and end scores for each token, from a body that `match_kinds` extra embeddings may inform."""

    def __init__(self, body: PreTrainedModel, match_kinds: int = 0) -> None:
        super().__init__()
        self.body = body
        self.match = nn.Embedding(match_kinds, body.config.hidden_size) if match_kinds else None
        if self.match is not None:
            spread = cast(nn.Embedding, body.get_input_embeddings()).weight.std().item()
            nn.init.normal_(self.match.weight, std=EMPHASIS * spread)
            nn.init.zeros_(self.match.weight[0])  # no match: the token as it was pretrained

    def forward(self, ids: Tensor, mask: Tensor, segments: Tensor, match: Tensor) -> Tensor:
        """Token ids, attention mask, segments and match kinds, all (B, T) → scores (B, T, 2)."""
        given: dict[str, Tensor] = {"input_ids": ids}
        if self.match is not None:
            given = {"inputs_embeds": self.body.get_input_embeddings()(ids) + self.match(match)}
        if takes_segments(self.body.config):
            given["token_type_ids"] = segments
        output = self.body(attention_mask=mask, **given)
        return torch.stack([output.start_logits, output.end_logits], dim=-1)

    def save_pretrained(self, folder: Path, state_dict: Mapping[str, Tensor] | None = None) -> None:
        """Write the body as transformers does, and the extra embedding beside it; of `state_dict`, where given."""
        weights = self.state_dict() if state_dict is None else state_dict
        body = {name.removeprefix("body."): weights[name] for name in weights if name.startswith("body.")}
        # By the names that transformers looks for: it would take those that the pretrained weights came with.
        self.body.save_pretrained(folder, state_dict=body, save_original_format=False)
        if self.match is not None:
            save_file({"weight": weights["match.weight"].cpu().contiguous()}, folder / FILE)

    def load_match(self, folder: Path) -> None:
        """Read the extra embedding that `save_pretrained` wrote."""
        if self.match is not None:
            self.match.load_state_dict(load_file(folder / FILE))
