"""The purpose of a tokenizer's special tokens, from the files beside it."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer

from retrace.core.errors import InputError
from retrace.core.files import read_object

FILES = ("tokenizer_config.json", "special_tokens_map.json")
RIGHT_PAD = "<|finetune_right_pad_id|>"  # Llama 3 has it in its vocabulary, but names no padding token


@dataclass(frozen=True)
class SpecialTokens:
    """The special tokens by purpose."""

    begin: str  # of a text
    end: str
    pad: str
    unknown: str | None  # for words outside the vocabulary; byte-level vocabularies have none
    mask: str | None  # causal models have none


OWN = SpecialTokens("[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]")
# The files of the original BERT and RoBERTa name no tokens: transformers' tokenizers of these families assume them.
ASSUMED = (OWN, SpecialTokens("<s>", "</s>", "<pad>", "<unk>", "<mask>"))


def find_special_tokens(folder: Path, tokenizer: Tokenizer) -> SpecialTokens:
    """The special tokens of a tokenizer in `folder`.

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
    # Some tokenizers name the token that ends a text as the unknown token too.
    return SpecialTokens(
        begin, end, pad, None if unknown in (begin, end, pad) else unknown, first("mask", "mask_token")
    )


def _named(folder: Path) -> dict[str, str]:
    """The tokens that the files name, by transformers' names such as cls_token."""
    found = {}
    for name in reversed(FILES):
        values = read_object(folder / name) if (folder / name).is_file() else {}
        tokens = {key: value.get("content") if isinstance(value, dict) else value for key, value in values.items()
                  if key.endswith("_token")}  # fmt: skip
        found |= {key: token for key, token in tokens.items() if isinstance(token, str)}
    return found


def _first(tokenizer: Tokenizer, tokens: Iterable[str | None]) -> str | None:
    return next((token for token in tokens if token is not None and tokenizer.token_to_id(token) is not None), None)
