"""Language models that compute logits only at chosen positions, and BERT with next-sentence prediction.

In small models most of the work is the head's product with the whole vocabulary. So masked models compute logits only
at masked positions, and the loss does not keep them for the backward pass. Attention may be restricted to each document
of a block (Krell et al. 2021).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel

from retrace.core.weights import parameters_by_module
from retrace.models.attention import added_mask, product_precision, rows_at, score_late
from retrace.models.heads import family_of, make_model, objective_of, read_config, read_model
from retrace.tokens.tokenizer import Vocabulary


def head_loss(hidden: Tensor, head: nn.Linear, targets: Tensor) -> Tensor:
    """The summed negative log-likelihood of targets (N,) for hidden states (N, C) under a linear head, in nats.

    PyTorch keeps the logits, the largest tensor, for the backward pass, in two precisions; here only the gradients of
    hidden states and weights are kept. Its `linear_cross_entropy` does the same, but is slower on a CPU than separate
    head and loss. With compiled models, targets may be -100 (no target). Products are in autocast's precision.
    """
    precision = product_precision(hidden.device)
    return cast(Tensor, _HeadLoss.apply(hidden, head.weight, head.bias, targets, precision))


class _HeadLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, precision: torch.dtype
    ) -> Tensor:
        hidden, weight, right = hidden.to(precision), weight.to(precision), targets[:, None]
        # Only compiled models have padded batches; they fuse the masking into another pass over the scores.
        has_target, right = (right >= 0, right.clamp(min=0)) if torch.compiler.is_compiling() else (None, right)
        scores = (hidden @ weight.T if bias is None else torch.addmm(bias.to(precision), hidden, weight.T)).float()
        logs = torch.log_softmax(scores, 1, out=scores)  # in place: scores are the largest tensor
        of_targets = logs.gather(1, right)
        loss = -(of_targets if has_target is None else of_targets * has_target).sum()
        gradient = logs.exp_()  # of the logits: their probabilities, minus 1 for the target
        gradient.scatter_(1, right, gradient.gather(1, right) - 1)
        if has_target is not None:
            gradient = gradient * has_target
        of_bias = None if bias is None else gradient.sum(0)
        gradient = gradient.to(precision)
        ctx.save_for_backward(gradient @ weight, gradient.T @ hidden, of_bias)
        return loss

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        scaled = [None if saved is None else saved.float() * gradients[0] for saved in ctx.saved_tensors]
        return (*scaled, None, None)


def within_documents(ids: Tensor, first: int, causal: bool, attention: str | None) -> Tensor:
    """The mask that keeps attention within documents: (B, 1, T, T) for ids (B, T), where `first` begins a document.

    Its form is that of the implementation `attention`: bool for sdpa, else added to the scores.
    """
    document = (ids == first).cumsum(1)
    seen = document[:, None, :, None] == document[:, None, None, :]
    if causal:
        seen = seen.tril()
    return seen if attention == "sdpa" else added_mask(seen)


class LanguageModel(nn.Module):
    """A transformers model for masked or causal language modelling, with logits at chosen positions only.

    Attention stays within documents if the config has a `document_start`, the token that begins a document.
    """

    def __init__(self, body: PreTrainedModel) -> None:
        super().__init__()
        self.body = body
        self.objective = objective_of(body.config)
        self._family = family = family_of(body.config)
        self._late = hasattr(family, "LastLayer") and body.config._attn_implementation != "eager"
        if self._late:
            score_late(body, family.LastLayer)

    def forward(self, ids: Tensor, at: Tensor, targets: Tensor | None = None) -> Tensor:
        """Logits over the vocabulary (N, V) for token ids (B, T), at N positions in the flattened ids.

        Positions are (N,), or (B, M) with M in each row; then the last layer is computed at these only. With targets
        (N,) the result is their summed loss instead, in nats.
        """
        if at.ndim == 2 and self._late:
            hidden = self._hidden(ids, scored=at).flatten(0, 1)
        else:
            hidden = rows_at(self._hidden(ids), at.flatten())
        return self._scored(hidden, targets)

    def _scored(self, hidden: Tensor, targets: Tensor | None) -> Tensor:
        """Hidden states (N, C) → logits (N, V) or, with targets, the loss."""
        head = cast(nn.Linear, self.body.get_output_embeddings())
        if hasattr(self._family, "before_vocabulary"):
            hidden = self._family.before_vocabulary(self.body, hidden)
        return head(hidden) if targets is None else head_loss(hidden, head, targets)

    def _hidden(self, ids: Tensor, **options: Tensor) -> Tensor:
        config, mask = self.body.config, None
        first = getattr(config, "document_start", None)
        if first is not None:
            mask = within_documents(ids, first, self.objective == "causal", config._attn_implementation)
        base = cast(nn.Module, self.body.base_model)
        return base(input_ids=ids, attention_mask=mask, **options).last_hidden_state  # (B, T, C)

    def save_pretrained(self, folder: Path, state_dict: Mapping[str, Tensor]) -> None:
        """Write these weights in transformers' format."""
        body = {name.removeprefix("body."): weight for name, weight in state_dict.items()}
        self.body.save_pretrained(folder, state_dict=body)


class PairModel(LanguageModel):
    """A language model that also predicts whether the second text of a pair follows the first."""

    def forward(  # pyright: ignore[reportIncompatibleMethodOverride] - returns both predictions
        self, ids: Tensor, at: Tensor, targets: Tensor | None = None, segments: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """A `LanguageModel`'s result, and the relation's logits (B, 2); segments and attention mask are (B, T)."""
        base = cast(nn.Module, self.body.base_model)
        output = base(input_ids=ids, token_type_ids=segments, attention_mask=mask)
        tokens = self._scored(rows_at(output.last_hidden_state, at.flatten()), targets)
        return tokens, self._family.relation_head(self.body, output.pooler_output)

    def of_tokens(self, ids: Tensor, at: Tensor) -> Tensor:
        """The token logits alone, as from a `LanguageModel`."""
        return self(ids, at)[0]


def make_language_model(config: PreTrainedConfig, seed: int, attention: str, pairs: bool = False) -> LanguageModel:
    """A language model, or a `PairModel`, with random weights drawn from `seed`.

    Raises InputError if the family has no head for pairs.
    """
    if pairs:
        return PairModel(make_model("pairs", config, seed, attention))
    return LanguageModel(make_model("language_model", config, seed, attention))


def read_language_model(folder: Path, seed: int, attention: str) -> LanguageModel:
    """The language model saved in `folder`.

    Raises InputError if weights of the body are missing.
    """
    return LanguageModel(read_model("language_model", folder, seed, attention))


def continue_model(folder: Path, vocabulary: Vocabulary, pairs: bool, seed: int, attention: str) -> LanguageModel:
    """The checkpoint in `folder`, for further pretraining; `pairs`: with next-sentence prediction.

    Without it, BERT's weights for next-sentence prediction are kept, but frozen. Raises InputError if weights of the
    body are missing, or if the family has no head for pairs.
    """
    config = read_config(folder)
    of_pairs = getattr(family_of(config), "PAIRS_ONLY", ())
    knows_pairs = any(part in f".{module}." for module in parameters_by_module(folder) for part in of_pairs)
    body = read_model("pairs" if pairs or knows_pairs else "language_model", folder, seed, attention)
    body.config.num_labels = 2  # it may have been fine-tuned on more classes
    if objective_of(config) == "causal":  # published causal models lack a padding token, which a classifier needs
        body.config.pad_token_id = vocabulary.pad
    if pairs:
        return PairModel(body)
    for name, weight in body.named_parameters():
        weight.requires_grad_(not any(part in name for part in of_pairs))
    return LanguageModel(body)
