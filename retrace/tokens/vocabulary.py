"""The ids that a model needs to know of its tokenizer."""

from dataclasses import dataclass

from retrace.tokens.tokenizer import SubwordTokenizer, token_id


@dataclass(frozen=True)
class Vocabulary:
    """How many tokens there are, and which are the special ones, by their names."""

    size: int
    pad: int
    unknown: int | None
    begin: int
    end: int
    mask: int | None

    @classmethod
    def of(cls, tokenizer: SubwordTokenizer) -> "Vocabulary":
        """The vocabulary of a tokenizer."""
        names = tokenizer.special
        unknown, mask = (None if name is None else token_id(tokenizer, name) for name in (names.unknown, names.mask))
        pad, begin, end = (token_id(tokenizer, name) for name in (names.pad, names.begin, names.end))
        return cls(tokenizer.size, pad, unknown, begin, end, mask)

    @property
    def special(self) -> tuple[int, ...]:
        """The special ids, each once, none of which is ever masked or predicted."""
        found = (self.pad, self.unknown, self.begin, self.end, self.mask)
        return tuple(dict.fromkeys(number for number in found if number is not None))
