"""Tokenizers with the special tokens, and their ids, as each family's published ones have them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from retrace.tokens.settings import TokenizerSettings
from retrace.tokens.tokenizer import SubwordTokenizer, token_id, train_tokenizer
from tests.tiny import TEXT

LENGTH = 64  # tokens that the tiny models read
WORD_PIECES, BYTE_PIECES = 120, 320  # tokens of their vocabularies; of the second kind, 256 stand for a byte each
_BERT_LIKE = {"unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}


@dataclass(frozen=True)
class Published:
    """A tokenizer with what its files say of it."""

    tokenizer: Tokenizer | SubwordTokenizer
    special: dict[str, str]  # bos_token and such, by name
    config: dict[str, Any]
    length: int  # tokens that its model reads

    def id(self, name: str) -> int | None:
        """The id of a special token; None if there is no such token."""
        return self.tokenizer.token_to_id(self.special[name]) if name in self.special else None

    def files(self) -> dict[str, bytes]:
        """The three files of an upload."""
        config = {**self.special, **self.config, "model_max_length": self.length}
        return {
            "tokenizer.json": self.tokenizer.to_str(pretty=True).encode(),
            "tokenizer_config.json": json.dumps(config, indent=2).encode(),
            "special_tokens_map.json": json.dumps(self.special, indent=2).encode(),
        }


def bert(text: Sequence[str] = TEXT, size: int = WORD_PIECES, length: int = LENGTH) -> Published:
    """WordPiece in lower case; [CLS] text [SEP] text [SEP]."""
    tokenizer = train_tokenizer(TokenizerSettings(vocab_size=size), lambda: text)
    special = {"pad_token": "[PAD]", **_BERT_LIKE}
    return Published(tokenizer, special, {"tokenizer_class": "BertTokenizer", "do_lower_case": True}, length)


def roberta(text: Sequence[str] = TEXT, size: int = BYTE_PIECES, length: int = LENGTH) -> Published:
    """Byte-level BPE; <s> text </s></s> text </s>, padding is 1 and the mask the last id."""
    tokenizer = _byte_level(["<s>", "<pad>", "</s>", "<unk>"], text, size)
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True)])
    end, start = ((token, token_id(tokenizer, token)) for token in ("</s>", "<s>"))
    tokenizer.post_processor = processors.RobertaProcessing(end, start, add_prefix_space=False)
    special = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "sep_token": "</s>"}
    special |= {"pad_token": "<pad>", "cls_token": "<s>", "mask_token": "<mask>"}
    return Published(tokenizer, special, {"tokenizer_class": "RobertaTokenizer"}, length)


def modernbert(text: Sequence[str] = TEXT, size: int = BYTE_PIECES, length: int = LENGTH) -> Published:
    """Byte-level BPE with BERT's special tokens behind all others."""
    tokenizer = _byte_level(["|||IP_ADDRESS|||", "<|padding|>"], text, size)
    special = {**_BERT_LIKE, "pad_token": "[PAD]"}
    tokenizer.add_special_tokens(["<|endoftext|>", "[UNK]", "[CLS]", "[SEP]", "[PAD]"])
    tokenizer.add_special_tokens([AddedToken("[MASK]", lstrip=True, special=True)])
    tokenizer.post_processor = _template(tokenizer, "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1")
    return Published(tokenizer, special, {"tokenizer_class": "PreTrainedTokenizerFast"}, length)


def llama(text: Sequence[str] = TEXT, size: int = BYTE_PIECES, length: int = LENGTH) -> Published:
    """Byte-level BPE; <|begin_of_text|> text. Nothing to pad, to mask or to stand for the unknown."""
    tokenizer = _byte_level([], text, size)
    special = {"bos_token": "<|begin_of_text|>", "eos_token": "<|end_of_text|>"}
    tokenizer.add_special_tokens(list(special.values()))
    begin = special["bos_token"]
    tokenizer.post_processor = _template(tokenizer, f"{begin} $A", f"{begin} $A {begin}:1 $B:1")
    return Published(tokenizer, special, {"tokenizer_class": "PreTrainedTokenizerFast"}, length)


def _byte_level(first: list[str], text: Sequence[str], size: int) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=first, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(text, trainer)
    return tokenizer


def _template(tokenizer: Tokenizer, single: str, pair: str) -> processors.TemplateProcessing:
    tokens = {piece.split(":")[0] for piece in f"{single} {pair}".split() if "$" not in piece}
    ids: list[Any] = [(token, token_id(tokenizer, token)) for token in sorted(tokens)]
    return processors.TemplateProcessing(single=single, pair=pair, special_tokens=ids)
