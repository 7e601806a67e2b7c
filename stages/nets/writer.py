"""A causal language model that writes what follows a prompt."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor
from torch.distributed.fsdp import FSDPModule
from torch.nn import functional
from transformers import GenerationConfig

from stages.harness.errors import InputError
from stages.nets.language_model import LanguageModel


@dataclass(frozen=True)
class Written:
    """What follows each of B prompts, and how sure the model was."""

    ids: Tensor  # (B, most), int64: the end, where there is one, and nothing but ends after it
    score: Tensor  # (B,): log-probability of the tokens up to the end, with it
    null_score: Tensor  # (B,): log-probability of the end as the first token


class Writer(LanguageModel):
    """A language model that is trained as any other and goes on by greedy decoding."""

    def write(self, prompts: Tensor, mask: Tensor, most: int, end: int) -> Written:
        """Prompts (B, T), padded on the left, and their attention mask → up to `most` tokens, of which `end` is last.

        Keys and values are kept from token to token; it stops when all have ended. Raises InputError where
        processes share the weights: each would have to write as many tokens as the others.
        """
        if isinstance(self, FSDPModule):
            raise InputError("params.yaml: squad.answers: generated is not allowed with sharded weights (FSDP)")
        how = GenerationConfig(
            max_new_tokens=most, do_sample=False, num_beams=1, eos_token_id=end, pad_token_id=end,
            return_dict_in_generate=True, output_logits=True,
        )  # fmt: skip
        found = cast(Any, self.body).generate(prompts, attention_mask=mask, generation_config=how)
        ids = found.sequences[:, prompts.shape[1] :]  # (B, L)
        steps = zip(found.logits, ids.T, strict=True)  # (B, V) and (B,) each
        logs = torch.stack([-functional.cross_entropy(scores, chosen, reduction="none") for scores, chosen in steps], 1)
        ends = ids == end
        after = ends.cumsum(1) > ends
        filled = functional.pad(ids, (0, most - ids.shape[1]), value=end)
        return Written(filled, logs.masked_fill(after, 0.0).sum(1), found.logits[0].log_softmax(-1)[:, end])

    def save_pretrained(self, folder: Path, state_dict: Mapping[str, Tensor] | None = None) -> None:
        """Write the body as transformers does; of `state_dict`, where given."""
        weights = self.state_dict() if state_dict is None else state_dict
        self.body.save_pretrained(folder, state_dict={name.removeprefix("body."): weights[name] for name in weights})
