"""What the special tokens of a tokenizer are for, by the files that lie beside it."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer

from retrace.core.errors import InputError
from retrace.core.files import read_object

FILES = ("tokenizer_config.json", "special_tokens_map.json")
RIGHT_PAD = "<|finetune_right_pad_id|>"  # Llama 3 has it in its vocabulary, and names no token for padding


@dataclass(frozen=True)
class SpecialTokens:
    """The special tokens by their roles."""

    begin: str  # of a text
    end: str
    pad: str
    unknown: str | None  # stands for what the vocabulary lacks; byte-level vocabularies lack nothing
    mask: str | None  # causal models have none


OWN = SpecialTokens("[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]")
# The checkpoints that BERT and RoBERTa were published as name no token in a file: transformers' tokenizers of
# these families take such names for granted.
ASSUMED = (OWN, SpecialTokens("<s>", "</s>", "<pad>", "<unk>", "<mask>"))


def find_special_tokens(folder: Path, tokenizer: Tokenizer) -> SpecialTokens:
    """The roles of the tokens of a tokenizer in `folder`.

    Raises InputError where no token begins a text, or none ends it.
    """
    named = _named(folder)
    assumed = [special for special in ASSUMED if tokenizer.token_to_id(special.begin) is not None]

    def first(role: str, *names: str) -> str | None:
        tokens = [*(named.get(name) for name in names), *(getattr(special, role) for special in assumed)]
        return _first(tokenizer, tokens)

    begin, end = first("begin", "cls_token", "bos_token"), first("end", "sep_token", "eos_token")
    if begin is None or end is None:
        role, names = ("begins", "cls_token or bos_token") if begin is None else ("ends", "sep_token or eos_token")
        raise InputError(f"{folder}: no token {role} a text: {FILES[0]} names no {names} that the vocabulary has")
    pad = first("pad", "pad_token") or _first(tokenizer, [RIGHT_PAD]) or end
    unknown = first("unknown", "unk_token")
    # Some name the token that ends a text for whatever they have no token for.
    return SpecialTokens(
        begin, end, pad, None if unknown in (begin, end, pad) else unknown, first("mask", "mask_token")
    )


def _named(folder: Path) -> dict[str, str]:
    """The tokens that the files name, by the names that transformers gives to roles."""
    found = {}
    for name in reversed(FILES):
        values = read_object(folder / name) if (folder / name).is_file() else {}
        tokens = {key: value.get("content") if isinstance(value, dict) else value for key, value in values.items()
                  if key.endswith("_token")}  # fmt: skip
        found |= {key: token for key, token in tokens.items() if isinstance(token, str)}
    return found


def _first(tokenizer: Tokenizer, tokens: Iterable[str | None]) -> str | None:
    return next((token for token in tokens if token is not None and tokenizer.token_to_id(token) is not None), None)
