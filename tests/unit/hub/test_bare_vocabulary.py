"""Tokenizers made from vocabularies, against the published ones and transformers'."""

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from retrace.core.errors import InputError
from retrace.hub.checkpoint import VOCABULARIES, make_tokenizer
from retrace.tokens.tokenizer import SubwordTokenizer, load_tokenizer
from tests.hub.content.models import BERT, ROBERTA, write_model

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "hall", "##s", "cafe", "##teria", ".", "un", "##aff"]
TEXTS = ("The guild of weavers, founded in 1601; it's closed.", "Café e\u0301  two\tspaces\u00a0", "русский 日本語 😀")


def _bert(folder: Path, tokens: Sequence[str] = TOKENS, **config: object) -> Path:
    write_model(folder, BERT, "config.json")
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in tokens))
    if config:
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def _made(folder: Path, model_type: str = "bert") -> SubwordTokenizer:
    make_tokenizer(folder, "name", model_type)
    return load_tokenizer(folder)


@pytest.mark.parametrize(("model", "model_type"), [(BERT, "bert"), (ROBERTA, "roberta")])
def test_it_is_the_published_one(tmp_path: Path, model: str, model_type: str) -> None:
    """Alone and in pairs, and by transformers too, which reads the folder of the made one."""
    whole = load_tokenizer(write_model(tmp_path / "published", model))
    folder = write_model(tmp_path / "bare", model, *VOCABULARIES[model_type], "config.json")
    made, theirs = _made(folder, model_type), AutoTokenizer.from_pretrained(folder)
    assert (made.special, made.pair_format) == (whole.special, whole.pair_format)
    for text in TEXTS:
        ids = whole.encode(text).ids
        assert made.encode(text).ids == theirs(text)["input_ids"] == ids
        assert made.decode(ids) == whole.decode(ids)
        assert made.encode(text, TEXTS[0]).ids == whole.encode(text, TEXTS[0]).ids


DIFFERS = r"name: its tokenizer and its vocab.txt differ in the token '\[MASK\]'$"


def test_the_config_says_what_is_done_about_a_vocabulary(tmp_path: Path) -> None:
    for name, tokens, config, text, expected in (
        ("cased", [*TOKENS, "The", "Café"], {"do_lower_case": False}, "The Café the", ["The", "Café", "the"]),
        ("accents", [*TOKENS, "café"], {"do_lower_case": True, "strip_accents": False}, "CAFÉ", ["café"]),
        ("a few capitals", [*TOKENS, *(f"w{number}" for number in range(200)), "The"], {}, "The", ["the"]),
    ):
        assert _made(_bert(tmp_path / name, tokens, **config)).encode(text).tokens[1:-1] == expected
    folder = write_model(tmp_path / "prefix", ROBERTA, *VOCABULARIES["roberta"], "config.json")
    (folder / "tokenizer_config.json").write_text('{"add_prefix_space": true}')
    made = _made(folder, "roberta")
    assert made.encode("hall").ids == made.encode(" hall").ids


@pytest.mark.parametrize(
    ("tokens", "config", "said"),
    [
        ([*TOKENS, "The"], {}, r"name: 1 of 9 tokens of vocab.txt have capital letters, and no tokenizer_config.json"),
        (TOKENS[:4] + TOKENS[5:], {}, DIFFERS),  # no [MASK]
        (TOKENS[1:4] + TOKENS[5:], {}, DIFFERS),  # nor [PAD]
        (TOKENS, {"do_basic_tokenize": False}, "do_basic_tokenize: false is not allowed, without tokenizer.json"),
    ],
)
def test_what_files_leave_open_is_refused(tmp_path: Path, tokens: list[str], config: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        _made(_bert(tmp_path, tokens, **config))


def test_added_tokens_are_of_the_vocabulary_too(tmp_path: Path) -> None:
    (tmp_path / "added_tokens.json").write_text(json.dumps({"<new>": len(TOKENS)}))
    assert _made(_bert(tmp_path)).encode("the <new> hall").tokens[1:-1] == ["the", "<new>", "hall"]


def test_code_that_comes_with_a_vocabulary_is_not_run(tmp_path: Path) -> None:
    code = {"auto_map": {"AutoTokenizer": [None, "own.Own"]}, "tokenizer_class": "Own"}
    (tmp_path / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Own: pass\n")
    with suppress(InputError):
        _made(_bert(tmp_path, **code))
    assert not (tmp_path / "ran").exists()


def test_files_that_are_none_are_one_line(tmp_path: Path) -> None:
    folder = write_model(tmp_path, ROBERTA, "vocab.json", "config.json")
    (folder / "merges.txt").write_text("#version: 0.2\nno such\n")
    said = r"^name: no tokenizer can be made from its vocab.json and merges.txt: [^\n]*$"
    with pytest.raises(InputError, match=said):
        _made(folder, "roberta")


def test_a_vocabulary_in_latin_1_is_one_line(tmp_path: Path) -> None:
    folder = _bert(tmp_path)
    (folder / "vocab.txt").write_bytes("".join(f"{token}\n" for token in [*TOKENS, "café"]).encode("latin-1"))
    with pytest.raises(InputError, match=r"^name: vocab\.txt is not UTF-8$"):
        _made(folder)
