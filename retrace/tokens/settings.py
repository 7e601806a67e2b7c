"""Settings of the tokenizer, and special tokens."""

from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from retrace.core.settings import Params, Section, require, require_each_once

SHORTEST_PAIR = 16  # tokens; shorter blocks or documents hold no two sentences


@dataclass(frozen=True)
class SpecialTokens:
    """The special tokens by purpose."""

    begin: str  # of a text
    end: str
    pad: str
    unknown: str | None  # for words outside the vocabulary; published byte-level ones have none
    mask: str | None  # published causal models have none


OWN = SpecialTokens("[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]")
# In the order of their ids. RoBERTa's positions start after the id of its padding token, which originally is 1.
SPECIAL = {
    "bert": (OWN.pad, "[UNK]", OWN.begin, OWN.end, "[MASK]"),
    "roberta": (OWN.begin, OWN.pad, OWN.end, "[UNK]", "[MASK]"),
}


class TokenizerSettings(Section):
    """The tokenizer to train; checkpoints bring their own."""

    kind: Literal["wordpiece", "bpe"] = Field(default="wordpiece", description="subword algorithm")
    vocab_size: int = Field(
        default=8192, ge=len(SPECIAL["bert"]) + 1, le=2**24 - 1, description="number of tokens, including special ones"
    )
    lowercase: bool = Field(default=True, description="lower-case the text")
    train_on: Annotated[tuple[Literal["text", "squad", "sst2"], ...], Field(min_length=1)] = Field(
        default=("text",),
        description="texts for tokenizer and pretraining: running text, SQuAD's passages, whole sentences of SST-2",
    )
    with_questions: bool = Field(
        default=False, description="put SQuAD's questions into its passages, each before the sentence of its answer"
    )
    special: Literal["bert", "roberta"] = Field(
        default="bert",
        description="number special tokens as this model does; RoBERTa's numbering needs two more position embeddings",
    )

    @model_validator(mode="after")
    def _texts_once(self) -> Self:
        require_each_once("train_on", self.train_on)
        fits = "squad" in self.train_on or not self.with_questions
        require(fits, "with_questions", True, "expected false, as train_on leaves out squad")
        return self

    @property
    def special_tokens(self) -> tuple[str, ...]:
        """The special tokens, in the order of their ids."""
        return SPECIAL[self.special]


class TokenizeParams(Params):
    """What stages/tokenize.py reads."""

    tokenizer: TokenizerSettings
