"""Subword tokenizers, trained or read from a folder, and the facts about them that models need."""

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, astuple, dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import category

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from tokenizers.implementations.base_tokenizer import BaseTokenizer

from retrace.core.errors import InputError
from retrace.core.files import read_object, require_file, write_json, write_text
from retrace.core.paths import UNKNOWN
from retrace.tokens.settings import OWN, SpecialTokens, TokenizerSettings

FILE, CONFIGS = "tokenizer.json", ("tokenizer_config.json", "special_tokens_map.json")
# All files that a tokenizer may have; some kinds can also be loaded from vocabulary files.
TOKENIZER_FILES = (
    FILE, *CONFIGS, "added_tokens.json", "vocab.txt", "vocab.json", "merges.txt", "tokenizer.model",
    "chat_template.jinja",
)  # fmt: skip
PART = "\ufffd"  # what bytes of an incomplete character are decoded to
RIGHT_PAD = "<|finetune_right_pad_id|>"  # Llama 3 has it in its vocabulary, but names no padding token
# The original files of BERT and RoBERTa name no tokens; transformers' tokenizers of these families assume these.
ASSUMED = (OWN, SpecialTokens("<s>", "</s>", "<pad>", "<unk>", "<mask>"))
# The keys of CONFIGS that name special tokens, by purpose.
NAMES = {
    "pad": ("pad_token",), "unknown": ("unk_token",), "begin": ("cls_token", "bos_token"),
    "end": ("sep_token", "eos_token"), "mask": ("mask_token",),
}  # fmt: skip


@dataclass(frozen=True)
class PairFormat:
    """The special tokens around a pair of texts."""

    before: tuple[int, ...]
    between: tuple[int, ...]
    after: tuple[int, ...]


class Located(NamedTuple):
    """A token's id, and its span in the text, in characters."""

    number: int
    start: int
    end: int


class SubwordTokenizer(BaseTokenizer):
    """A tokenizer of the tokenizers library that knows the purpose of its special tokens.

    A special token that is spelt out in a text, such as [CLS], is ordinary text: only formats insert special tokens.
    """

    def __init__(self, tokenizer: Tokenizer, special: SpecialTokens) -> None:
        super().__init__(tokenizer)
        self.special = special
        self.unknown = -1 if special.unknown is None else token_id(tokenizer, special.unknown)  # -1: there is none
        tokenizer.encode_special_tokens = True  # despite its name: encode them as ordinary text

    @property
    def size(self) -> int:
        """One more than the highest id."""
        return max(self.get_vocab().values()) + 1

    @property
    def pair_format(self) -> PairFormat:
        """The tokenizer's own format for a pair of texts."""
        encoding = self.encode("a", "a")
        ids, owners = encoding.ids, encoding.sequence_ids  # which of the two texts each token belongs to, if any
        first, second = owners.index(0), owners.index(1)
        return PairFormat(
            before=tuple(ids[:first]),
            between=tuple(ids[first + owners.count(0) : second]),
            after=tuple(ids[second + owners.count(1) :]),
        )

    def encode_documents(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text between begin and end token, whatever the tokenizer's own format.

        WikiText's mark for an unknown word becomes the unknown token, if there is one.
        """
        begin, end = token_id(self, self.special.begin), token_id(self, self.special.end)
        pieces = [self._pieces(text) for text in texts]
        encoded = iter(self._tokenizer.encode_batch_fast(list(chain.from_iterable(pieces)), add_special_tokens=False))
        documents = []
        for parts in pieces:
            ids = [begin, *next(encoded).ids]
            for _ in parts[1:]:
                ids += [self.unknown, *next(encoded).ids]
            documents.append([*ids, end])
        return documents

    def located(self, text: str) -> list[Located]:
        """The tokens of a text as in `encode_documents`, without begin and end token."""
        found, start = [], 0
        for number, piece in enumerate(self._pieces(text)):
            if number:
                found.append(Located(self.unknown, start, start + len(UNKNOWN)))
                start += len(UNKNOWN)
            encoding = self.encode(piece, add_special_tokens=False)
            tokens = zip(encoding.ids, encoding.offsets, strict=True)
            found += [Located(token, start + first, start + last) for token, (first, last) in tokens]
            start += len(piece)
        return found

    def known(self, text: str, end: int | None = None) -> str:
        """The text up to the character `end`, without the parts that become unknown tokens."""
        end = len(text) if end is None else end
        left_out = [token for token in self.located(text) if token.number == self.unknown and token.start < end]
        starts = [0, *(token.end for token in left_out)]
        ends = [*(token.start for token in left_out), end]
        return "".join(text[start:stop] for start, stop in zip(starts, ends, strict=True))

    def _pieces(self, text: str) -> list[str]:
        """The parts of the text between the marks for unknown words."""
        return [text] if self.special.unknown is None else text.split(UNKNOWN)


def train_tokenizer(settings: TokenizerSettings, documents: Callable[[], Iterable[str]]) -> SubwordTokenizer:
    """Train a WordPiece (Schuster and Nakajima 2012) or byte-level BPE (Sennrich et al. 2016) tokenizer.

    `documents` is called for each pass over the text. WikiText's marks for unknown words are left out. The same text
    gives the same tokenizer. Raises InputError where the text is too small to fill the vocabulary, or the vocabulary
    too small for the text's characters.
    """

    def texts() -> Iterator[str]:
        return (document.replace(UNKNOWN, " ") for document in documents())

    tokenizer = (_train_wordpiece if settings.kind == "wordpiece" else _train_bpe)(settings, texts)
    filled = tokenizer.get_vocab_size()
    if filled != settings.vocab_size:
        is_large = filled < settings.vocab_size
        why = "more than the corpus can fill" if is_large else "too few for special tokens and single characters"
        allowed = f"expected at {'most' if is_large else 'least'} {filled}"
        raise InputError(f"params.yaml: tokenizer.vocab_size: {settings.vocab_size} is {why}; {allowed}")
    tokenizer.add_special_tokens(list(settings.special_tokens))
    tokenizer.post_processor = _template(tokenizer, OWN)
    return SubwordTokenizer(tokenizer, OWN)


def load_tokenizer(folder: Path) -> SubwordTokenizer:
    """Load the tokenizer in `folder`; if its format puts no token before a text or between two, it gets BERT's format.

    Raises InputError if there is none, or it has no tokens that begin and end a text.
    """
    path = folder / FILE
    require_file(path)
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing more specific
        raise InputError(f"{path}: not a tokenizer: {error}") from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    special = find_special_tokens(folder, tokenizer)
    _call_special(tokenizer, special, path)
    found = SubwordTokenizer(tokenizer, special)
    try:
        own = found.pair_format
        tokenizer.encode("\U00012000", add_special_tokens=False)  # a cuneiform sign, so most likely an unknown token
    except Exception as error:  # likewise; or the vocabulary has neither the character nor an unknown token
        raise InputError(f"{path}: not a tokenizer: it cannot encode every text: {error}") from None
    if not own.before or not own.between:
        tokenizer.post_processor = _template(tokenizer, special)
    return found


def find_special_tokens(folder: Path, tokenizer: Tokenizer) -> SpecialTokens:
    """The special tokens that the files in `folder` name or, for BERT and RoBERTa, those in the vocabulary.

    Raises InputError if no token begins a text, or none ends it.
    """
    named: dict[str, str | None] = {}
    for path in (folder / name for name in reversed(CONFIGS)):
        for key, value in (read_object(path) if path.is_file() else {}).items():
            token = value.get("content") if isinstance(value, dict) else value
            if key.endswith("_token") and isinstance(token, str):
                named[key] = token
    assumed = [special for special in ASSUMED if tokenizer.token_to_id(special.begin) is not None]

    def first(role: str) -> str | None:
        tokens = [*map(named.get, NAMES[role]), *(getattr(special, role) for special in assumed)]
        return next((token for token in tokens if token and tokenizer.token_to_id(token) is not None), None)

    begin, end, unknown = map(first, ("begin", "end", "unknown"))
    if begin is None or end is None:
        role = "begin" if begin is None else "end"
        names = " or ".join(NAMES[role])
        raise InputError(f"{folder}: no token {role}s a text: {CONFIGS[0]} names no {names} that the vocabulary has")
    pad = first("pad") or (RIGHT_PAD if tokenizer.token_to_id(RIGHT_PAD) is not None else end)
    # Some tokenizers name the same token as end of text and as unknown.
    return SpecialTokens(begin, end, pad, None if unknown in (begin, end, pad) else unknown, first("mask"))


def token_id(tokenizer: Tokenizer | SubwordTokenizer, token: str) -> int:
    """The id of a token.

    Raises KeyError if the vocabulary does not have it.
    """
    found = tokenizer.token_to_id(token)
    if found is None:
        raise KeyError(token)
    return found


def word_edges(tokenizer: SubwordTokenizer) -> tuple[list[bool], list[bool]]:
    """For each id, whether it continues the word of the previous token, and whether any token after it begins one.

    A token that continues a word is `##…`, or begins with a letter, a digit or a mark such as an accent; bytes of a
    character that is split over several tokens count as letters. White space such as a line break ends a word. A single
    space begins a word rather than ending one: byte-level BPE may have no token that joins it to the next letter.
    """
    wordpiece = isinstance(tokenizer.model, models.WordPiece)
    is_bytes = isinstance(tokenizer.decoder, decoders.ByteLevel)
    continues, closes = [False] * tokenizer.size, [False] * tokenizer.size
    for token, number in tokenizer.get_vocab().items():
        text = tokenizer.decoder.decode([token]) if is_bytes else token
        first = text[:1] or " "
        continues[number] = token.startswith("##") if wordpiece else first == PART or category(first)[0] in "LMN"
        closes[number] = text[-1:].isspace() and text != " "
    return continues, closes


def save_tokenizer(tokenizer: SubwordTokenizer, folder: Path, lowercase: bool) -> None:
    """Write the tokenizer in a form that transformers' AutoTokenizer loads."""
    write_text(folder / FILE, tokenizer.to_str(pretty=True))
    tokens = {name: getattr(tokenizer.special, role) for role, (name, *_) in NAMES.items()}
    config = {name: token for name, token in tokens.items() if token is not None}
    write_json(folder / CONFIGS[0], config | {"tokenizer_class": "PreTrainedTokenizerFast", "do_lower_case": lowercase})


def copy_tokenizer(source: Path, folder: Path) -> None:
    """Copy those of a tokenizer's files that exist."""
    for name in TOKENIZER_FILES:
        if (source / name).is_file():
            shutil.copyfile(source / name, folder / name)


def _call_special(tokenizer: Tokenizer, special: SpecialTokens, path: Path) -> None:
    """Mark all special tokens as special, since not every file does."""
    added = tokenizer.get_added_tokens_decoder()
    names = sorted({name for name in astuple(special) if name is not None})
    ids = {token_id(tokenizer, name): name for name in names}
    for name in names:
        if (other := ids[token_id(tokenizer, name)]) != name:
            raise InputError(f"{path}: not a tokenizer: {name} and {other} have the same id")
    ordinary = [name for name in names if (token := added.get(token_id(tokenizer, name))) and not token.special]
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in ordinary])


def _train_wordpiece(settings: TokenizerSettings, documents: Callable[[], Iterable[str]]) -> Tokenizer:
    """Train with all pieces of one character as special tokens, which makes the result deterministic.

    The trainer numbers these pieces in the order of a hash table, which differs from run to run, and breaks ties
    between merges by number. The tokenizer is then rebuilt from the vocabulary, so that they are ordinary tokens.
    """
    tokenizer = _empty_wordpiece({}, settings)
    pieces = [f"##{character}" for character in _inner_characters(tokenizer, documents())]
    trainer = trainers.WordPieceTrainer(
        vocab_size=settings.vocab_size, min_frequency=2, special_tokens=[*settings.special_tokens, *pieces],
        show_progress=False,
    )  # fmt: skip
    tokenizer.train_from_iterator(documents(), trainer)
    return _empty_wordpiece(tokenizer.get_vocab(with_added_tokens=False), settings)


def _empty_wordpiece(vocabulary: dict[str, int], settings: TokenizerSettings) -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=OWN.unknown, max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=settings.lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer


def _inner_characters(tokenizer: Tokenizer, documents: Iterable[str]) -> list[str]:
    """All characters that occur in words after the first position, sorted.

    No word holds a space, and most runs of characters between two spaces occur often, so that each is read once.
    """
    normalize, split = tokenizer.normalizer.normalize_str, tokenizer.pre_tokenizer.pre_tokenize_str
    found, seen = set[str](), set[str]()
    for document in documents:
        runs = {*document.split(" ")} - seen
        found.update(character for run in runs for word, _ in split(normalize(run)) for character in word[1:])
        seen.update(run for run in runs if len(run) <= 50)  # a text without spaces is one run, and large
    return sorted(found)


def _train_bpe(settings: TokenizerSettings, documents: Callable[[], Iterable[str]]) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Lowercase() if settings.lowercase else normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=settings.vocab_size,
        min_frequency=2,
        special_tokens=list(settings.special_tokens),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(documents(), trainer)
    return tokenizer


def _template(tokenizer: Tokenizer, special: SpecialTokens) -> processors.TemplateProcessing:
    """BERT's format: begin token, text, end token and, for a pair, second text, end token."""
    begin, end = special.begin, special.end
    ends = [(token, token_id(tokenizer, token)) for token in dict.fromkeys((begin, end))]
    return processors.TemplateProcessing(
        single=f"{begin} $A {end}", pair=f"{begin} $A {end} $B:1 {end}:1", special_tokens=ends
    )


@dataclass(frozen=True)
class Vocabulary:
    """The number of tokens, and the ids of the special ones, by the names in `SpecialTokens`."""

    size: int
    pad: int
    unknown: int | None
    begin: int
    end: int
    mask: int | None

    @classmethod
    def of(cls, tokenizer: SubwordTokenizer) -> "Vocabulary":
        """The vocabulary of a tokenizer."""
        named = asdict(tokenizer.special).items()
        ids: dict[str, Any] = {role: token and token_id(tokenizer, token) for role, token in named}
        return cls(tokenizer.size, **ids)

    @property
    def ids(self) -> dict[str, Any]:
        """What a config says of the vocabulary, by transformers' names."""
        return {"vocab_size": self.size, "pad_token_id": self.pad, "bos_token_id": self.begin, "eos_token_id": self.end}

    @property
    def special(self) -> tuple[int, ...]:
        """The distinct special ids, which are never masked or predicted."""
        return tuple(dict.fromkeys(number for number in astuple(self)[1:] if number is not None))
