"""Subword tokenizers: trained on the corpus's training split, or a given one."""

import json
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from stages.corpus.text import UNKNOWN
from stages.harness.errors import InputError
from stages.harness.settings import require

PAD, UNK, CLS, SEP, MASK = SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
FILE = "tokenizer.json"
SPACE = "Ġ"  # how byte-level BPE writes a space; a letter to Unicode


@dataclass(frozen=True)
class TokenizerSettings:
    """How text becomes tokens."""

    kind: Literal["wordpiece", "bpe"] = "wordpiece"
    vocab_size: int = 8192  # tokens, special ones included
    lowercase: bool = True
    given: str | None = None  # a folder with tokenizer.json to take instead of training one
    texts: tuple[str, ...] = ("text",)  # what is trained on: text, and the training parts of squad and sst2

    def __post_init__(self) -> None:
        require(self.vocab_size > len(SPECIAL), "vocab_size", self.vocab_size, f"more than {len(SPECIAL)}")
        unknown = [name for name in self.texts if name not in ("text", "squad", "sst2")]
        require(not unknown and bool(self.texts), "texts", list(self.texts), "allowed: text, squad, sst2")


def train_tokenizer(settings: TokenizerSettings, documents: Callable[[], Iterable[str]], key: str) -> Tokenizer:
    """Train a WordPiece (Schuster and Nakajima 2012) or byte-level BPE (Sennrich et al. 2016) tokenizer.

    `documents` is called for each pass over the text. The same text gives the same tokenizer. Raises
    InputError, naming the param's `key`, where the corpus is too small to fill the vocabulary.
    """
    if settings.kind == "wordpiece":
        tokenizer = _train_wordpiece(settings, documents)
    else:
        tokenizer = _train_bpe(settings, documents)
    filled = tokenizer.get_vocab_size()
    if filled < settings.vocab_size:
        raise InputError(
            f"params.yaml: {key}: {settings.vocab_size} is more than the corpus can fill; expected at most {filled}"
        )
    _add_specials(tokenizer)
    return tokenizer


def load_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer saved in `folder`.

    Raises InputError where there is none, or it lacks a special token that the stages need.
    """
    path = folder / FILE
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises nothing more specific
        raise InputError(f"{path}: not a tokenizer: {error}") from None
    missing = [token for token in SPECIAL if tokenizer.token_to_id(token) is None]
    if missing:
        raise InputError(f"{path}: the vocabulary lacks {missing[0]}")
    return tokenizer


def token_id(tokenizer: Tokenizer, token: str) -> int:
    """The id of a token that the vocabulary has.

    Raises KeyError where it has not.
    """
    found = tokenizer.token_to_id(token)
    if found is None:
        raise KeyError(token)
    return found


def continuing_tokens(tokenizer: Tokenizer) -> list[bool]:
    """For each id whether it goes on with the word of the token before: `##…`, or letters without a space before."""
    vocabulary = tokenizer.get_vocab()
    wordpiece = isinstance(tokenizer.model, models.WordPiece)
    found = [False] * len(vocabulary)
    for token, number in vocabulary.items():
        found[number] = token.startswith("##") if wordpiece else token[:1].isalnum() and token[0] != SPACE
    return found


def save_tokenizer(tokenizer: Tokenizer, folder: Path, lowercase: bool) -> None:
    """Write the tokenizer so that transformers' AutoTokenizer loads it too."""
    (folder / FILE).write_text(tokenizer.to_str(pretty=True), encoding="utf-8")
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    config: dict[str, Any] = dict(zip(names, SPECIAL, strict=True))
    config |= {"tokenizer_class": "PreTrainedTokenizerFast", "do_lower_case": lowercase}
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def copy_tokenizer(source: Path, folder: Path) -> None:
    """Keep the tokenizer beside the weights that were trained with it."""
    for name in (FILE, "tokenizer_config.json"):
        shutil.copyfile(source / name, folder / name)


def without_marks(text: str) -> str:
    """Text with WikiText's mark for a left-out word replaced by the tokenizer's own."""
    return text.replace(UNKNOWN, UNK)


def _train_wordpiece(settings: TokenizerSettings, documents: Callable[[], Iterable[str]]) -> Tokenizer:
    """Train with the pieces of one character known beforehand.

    The trainer numbers these as it meets them, in the order of a hash table that differs from run to
    run, and breaks ties between merges by number. Given in a fixed order as special tokens, they keep
    their numbers; the tokenizer is then made anew from the vocabulary, without that mark.
    """
    tokenizer = _empty_wordpiece({}, settings)
    pieces = [f"##{character}" for character in _inner_characters(tokenizer, documents())]
    trainer = trainers.WordPieceTrainer(
        vocab_size=settings.vocab_size, min_frequency=2, special_tokens=[*SPECIAL, *pieces], show_progress=False
    )
    tokenizer.train_from_iterator(documents(), trainer)
    return _empty_wordpiece(tokenizer.get_vocab(with_added_tokens=False), settings)


def _empty_wordpiece(vocabulary: dict[str, int], settings: TokenizerSettings) -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=UNK, max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=settings.lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer


def _inner_characters(tokenizer: Tokenizer, documents: Iterable[str]) -> list[str]:
    """All characters that occur in a word after its first, sorted."""
    words: set[str] = set()
    for document in documents:
        text = tokenizer.normalizer.normalize_str(document)
        words.update(word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(text))
    return sorted({character for word in words for character in word[1:]})


def _train_bpe(settings: TokenizerSettings, documents: Callable[[], Iterable[str]]) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Lowercase() if settings.lowercase else normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=settings.vocab_size,
        min_frequency=2,
        special_tokens=list(SPECIAL),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(documents(), trainer)
    return tokenizer


def _add_specials(tokenizer: Tokenizer) -> None:
    tokenizer.add_special_tokens(list(SPECIAL))
    ends = [(token, tokenizer.token_to_id(token)) for token in (CLS, SEP)]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{CLS} $A {SEP}", pair=f"{CLS} $A {SEP} $B:1 {SEP}:1", special_tokens=ends
    )
