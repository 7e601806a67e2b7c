"""The ids that a model needs to know of its tokenizer."""

from dataclasses import dataclass

from tokenizers import Tokenizer

from stages.corpus.tokenizer import CLS, MASK, PAD, SEP, UNK, token_id


@dataclass(frozen=True)
class Vocabulary:
    """How many tokens there are, and which are the special ones."""

    size: int
    pad: int
    unk: int
    cls: int
    sep: int
    mask: int

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> "Vocabulary":
        """The vocabulary of a tokenizer that `load_tokenizer` has checked."""
        return cls(tokenizer.get_vocab_size(), *(token_id(tokenizer, token) for token in (PAD, UNK, CLS, SEP, MASK)))

    @property
    def special(self) -> tuple[int, ...]:
        """The special ids, none of which is ever masked or predicted."""
        return (self.pad, self.unk, self.cls, self.sep, self.mask)
