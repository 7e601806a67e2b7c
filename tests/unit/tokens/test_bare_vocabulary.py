"""Tokenizers made from vocabularies, against the ones they are of, against transformers' and by hand."""

import json
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from retrace.core.errors import InputError
from retrace.tokens.bare_vocabulary import SAMPLES, make_tokenizer
from retrace.tokens.tokenizer import load_tokenizer
from tests.hub.content.models import BERT, ROBERTA, published_models

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "hall", "##s", "cafe", "##teria", ".", "un", "##aff"]


def _words(text: str) -> list[str]:
    """Words and marks of lower-case text without accents (Devlin et al. 2018, BasicTokenizer)."""
    plain = "".join(c for c in unicodedata.normalize("NFD", text.lower()) if unicodedata.category(c) != "Mn")
    return "".join(c if c.isalnum() else " " if c.isspace() else f" {c} " for c in plain).split()


def _pieces(word: str, tokens: Sequence[str]) -> list[str]:
    """The longest piece that fits, again and again; nothing of a word that they do not fill."""
    found, start = [], 0
    while start < len(word):
        fits = [end for end in range(len(word), start, -1) if ("##" if start else "") + word[start:end] in tokens]
        if not fits:
            return ["[UNK]"]
        found.append(("##" if start else "") + word[start : fits[0]])
        start = fits[0]
    return found


def _bert(folder: Path, tokens: Sequence[str] = TOKENS, **config: object) -> Path:
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in tokens))
    (folder / "config.json").write_bytes(published_models()[BERT]["config.json"])
    if config:
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def _roberta(folder: Path, **config: object) -> Path:
    for name in ("vocab.json", "merges.txt", "config.json"):
        (folder / name).write_bytes(published_models()[ROBERTA][name])
    if config:
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize("text", ["The halls. Cafeteria", "CAFÉ unaffected the hallx", "s the.the"])
def test_words_are_cut_as_by_hand(tmp_path: Path, text: str) -> None:
    make_tokenizer(_bert(tmp_path), "org/name", "bert")
    by_hand = [piece for word in _words(text) for piece in _pieces(word, TOKENS)]
    assert load_tokenizer(tmp_path).encode(text).tokens == ["[CLS]", *by_hand, "[SEP]"]


def test_wordpiece_is_the_published_one(tmp_path: Path) -> None:
    published = tmp_path / "published"
    published.mkdir()
    for name, content in published_models()[BERT].items():
        (published / name).write_bytes(content)
    tokens = (published / "vocab.txt").read_text().splitlines()
    make_tokenizer(_bert(tmp_path, tokens), "org/name", "bert")
    _assert_same(tmp_path, published)


def test_byte_level_bpe_is_the_published_one(tmp_path: Path) -> None:
    published = tmp_path / "published"
    published.mkdir()
    for name, content in published_models()[ROBERTA].items():
        (published / name).write_bytes(content)
    make_tokenizer(_roberta(tmp_path), "org/name", "roberta")
    _assert_same(tmp_path, published)


def _assert_same(folder: Path, published: Path) -> None:
    """Both ways, alone and in pairs, and by transformers too, which reads the folder of the made one."""
    made, whole, theirs = load_tokenizer(folder), load_tokenizer(published), AutoTokenizer.from_pretrained(folder)
    assert (made.special, made.pair_format) == (whole.special, whole.pair_format)
    for text in SAMPLES:
        ids = whole.encode(text).ids
        assert made.encode(text).ids == theirs(text)["input_ids"] == ids
        assert made.decode(ids) == whole.decode(ids)
        assert made.encode(text, SAMPLES[0]).ids == whole.encode(text, SAMPLES[0]).ids


def test_the_config_says_what_is_done_about_a_vocabulary(tmp_path: Path) -> None:
    for name, tokens, config, text, expected in (
        ("cased", [*TOKENS, "The", "Café"], {"do_lower_case": False}, "The Café the", ["The", "Café", "the"]),
        ("accents", [*TOKENS, "café"], {"do_lower_case": True, "strip_accents": False}, "CAFÉ", ["café"]),
    ):
        (tmp_path / name).mkdir()
        make_tokenizer(_bert(tmp_path / name, tokens, **config), name, "bert")
        assert load_tokenizer(tmp_path / name).encode(text).tokens[1:-1] == expected
    (tmp_path / "prefix").mkdir()
    make_tokenizer(_roberta(tmp_path / "prefix", add_prefix_space=True), "prefix", "roberta")
    made = load_tokenizer(tmp_path / "prefix")
    assert made.encode("hall").ids == made.encode(" hall").ids


@pytest.mark.parametrize(
    ("tokens", "config", "said"),
    [
        (
            [*TOKENS, "The"],
            {},
            r"org/name: 1 of 9 tokens of vocab.txt have capital letters, and no tokenizer_config.json",
        ),
        (TOKENS[:4] + TOKENS[5:], {}, r"org/name: '\[MASK\]' is a token of its tokenizer, but not of its vocab.txt"),
        (TOKENS, {"do_basic_tokenize": False}, "do_basic_tokenize: false is not allowed, without tokenizer.json"),
    ],
)
def test_what_files_leave_open_is_refused(
    tmp_path: Path, tokens: list[str], config: dict[str, object], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        make_tokenizer(_bert(tmp_path, tokens, **config), "org/name", "bert")


def test_files_that_are_none_are_one_line(tmp_path: Path) -> None:
    (_roberta(tmp_path) / "merges.txt").write_text("#version: 0.2\nno such\n")
    with pytest.raises(
        InputError, match=r"^org/name: no tokenizer can be made of its vocab.json and merges.txt: [^\n]*$"
    ):
        make_tokenizer(tmp_path, "org/name", "roberta")
