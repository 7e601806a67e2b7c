import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
from transformers import AutoTokenizer

from retrace.core.errors import InputError
from retrace.tokens.settings import TokenizerSettings
from retrace.tokens.tokenizer import SubwordTokenizer, load_tokenizer, save_tokenizer, train_tokenizer, word_edges
from tests import tiny
from tests.toy import ROOT

TEXT = ["the quick brown fox jumps over the lazy dog", "the slow brown bear sleeps under the old tree"] * 20
each_kind = pytest.mark.parametrize(("kind", "size"), [("wordpiece", 60), ("bpe", 290)])


def _trained(kind: Any, size: int, text: Sequence[str] = TEXT, special: Any = "bert") -> SubwordTokenizer:
    return train_tokenizer(TokenizerSettings(kind=kind, vocab_size=size, special=special), lambda: text)


@each_kind
def test_trains_saves_and_loads(tmp_path: Path, kind, size: int) -> None:
    tokenizer = _trained(kind, size)
    assert tokenizer.get_vocab_size() == size
    save_tokenizer(tokenizer, tmp_path, lowercase=True)
    encoding = load_tokenizer(tmp_path).encode("The quick bear")
    assert (encoding.tokens[0], encoding.tokens[-1]) == ("[CLS]", "[SEP]")
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    assert encoding.ids == theirs("The quick bear")["input_ids"]
    names = (theirs.cls_token, theirs.sep_token, theirs.pad_token, theirs.unk_token, theirs.mask_token)
    assert names == ("[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]")
    with pytest.raises(InputError, match=r"none/tokenizer\.json: no such file$"):
        load_tokenizer(tmp_path / "none")


@each_kind
def test_special_tokens_may_be_numbered_as_those_of_roberta(tmp_path: Path, kind, size: int) -> None:
    own, bert = (_trained(kind, size, special=special) for special in ("roberta", "bert"))
    assert [own.id_to_token(number) for number in range(5)] == ["[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]"]
    save_tokenizer(own, tmp_path, lowercase=True)
    assert load_tokenizer(tmp_path).special == bert.special
    assert own.encode("the quick bear").tokens == bert.encode("the quick bear").tokens


def test_the_same_text_gives_the_same_tokenizer_in_every_process() -> None:
    """The WordPiece trainer of the tokenizers library alone would not: it follows a hash table's order."""
    program = f"""
from retrace.tokens.tokenizer import *
for kind, size in (("wordpiece", 120), ("bpe", 290)):
    print(train_tokenizer(TokenizerSettings(kind=kind, vocab_size=size), lambda: {tiny.TEXT!r}).to_str())
"""
    found = [subprocess.check_output([sys.executable, "-c", program], cwd=ROOT) for _ in range(3)]
    assert found[0] == found[1] == found[2]
    assert len(found[0]) > 2000


@pytest.mark.parametrize(("kind", "size"), [("wordpiece", 5 + 5), ("bpe", 5 + 256)])
def test_what_occurs_twice_is_merged_and_what_occurs_once_is_not(kind, size: int) -> None:
    """Beside special tokens there are x, y, z, ##y and ##z, or bytes; among bytes, a space is merged too."""
    filled = size + (2 if kind == "wordpiece" else 3)
    twice = _trained(kind, filled, ["xyz", "xyz"])
    assert len(twice.encode("xyz", add_special_tokens=False).ids) == 1
    place = r"^params\.yaml: tokenizer\.vocab_size: "
    few = "6 is too few for special tokens and single characters; expected at least"
    with pytest.raises(InputError, match=place + few):
        train_tokenizer(TokenizerSettings(vocab_size=6, kind=kind), lambda: ["a few letters"])
    with pytest.raises(InputError, match=f"{place}{filled} is more than the corpus can fill; expected at most {size}$"):
        _trained(kind, filled, ["xyz"])


SPELT = ["the [CLS] fox [SEP]", "[MASK]", "the fox[PAD]over [UNK]", "<s> the </s> fox <mask>"]


@each_kind
def test_a_special_token_spelt_out_in_a_text_is_text(tmp_path: Path, kind, size: int) -> None:
    trained = _trained(kind, size, [*TEXT, *SPELT] * 2)
    save_tokenizer(trained, tmp_path, lowercase=True)
    special = [trained.token_to_id(token) for token in ("[PAD]", "[CLS]", "[SEP]", "[MASK]", "[UNK]")]
    for tokenizer in (trained, load_tokenizer(tmp_path)):
        for text, ids in zip(SPELT, tokenizer.encode_documents(SPELT), strict=True):
            assert [number for number in ids if number in special] == special[1:3]
            assert tokenizer.encode(text).ids == tokenizer.encode_batch([text])[0].ids == ids
            assert tokenizer.encode(text, "the fox").ids[: len(ids)] == ids
            assert [token.number for token in tokenizer.located(text)] == ids[1:-1]


def test_a_given_tokenizer_may_not_call_its_tokens_special(tmp_path: Path) -> None:
    """RoBERTa's names; two of them are not special tokens in the file, as in some converted tokenizers."""
    vocabulary = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": 4, "<": 5, "s": 6, ">": 7, "/": 8, "Ġ": 9}
    tokenizer = Tokenizer(models.BPE(vocabulary, [], unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.add_tokens([AddedToken("<s>"), AddedToken("</s>")])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    found = load_tokenizer(tmp_path)
    assert found.encode_documents(["<s> </s>"]) == [[0, 5, 6, 7, 9, 5, 8, 6, 7, 2]]
    assert found.encode("<s>", "s").ids == [0, 5, 6, 7, 2, 6, 2]


@each_kind
def test_tokens_stand_where_their_text_does(kind, size: int) -> None:
    tokenizer, text = _trained(kind, size), "The <unk> fox\njumps<unk> over 🙂 dogs"
    located = tokenizer.located(text)
    assert [[token.number for token in located]] == [ids[1:-1] for ids in tokenizer.encode_documents([text])]
    left_out = [text[token.start : token.end] for token in located if token.number == tokenizer.token_to_id("[UNK]")]
    sign = [] if kind == "bpe" else ["🙂"]  # bytes can spell everything
    assert left_out == ["<unk>", "<unk>", *sign]
    assert tokenizer.known(text) == text.replace("<unk>", "").replace("".join(sign), "")
    assert tokenizer.known(text, 13) == "The  fox"
    assert text[located[-1].start : located[-1].end].endswith("s")


def _words(tokenizer: SubwordTokenizer, text: str) -> list[str]:
    """The text cut at each place at which a word begins."""
    continues, closes = word_edges(tokenizer)
    words, before = [""], True
    for token in tokenizer.located(text):
        if before or not continues[token.number]:
            words.append("")
        words[-1] += text[token.start : token.end]
        before = closes[token.number]
    return words[1:]


def test_white_space_ends_a_word_of_bytes() -> None:
    text = "the end\nthe start\tthe\u3000dog\n\nthe\r\nend"
    words = [word for word in _words(_trained("bpe", 276, [text] * 20), text) if not word.isspace()]
    assert words == ["the", " end", "the", " start", "the", "dog", "the", "end"]


def test_a_character_of_several_tokens_is_in_one_word() -> None:
    # á is the bytes C3 and A1
    tokenizer = _trained("bpe", 262, ["ab " * 9])
    tokens, (continues, _) = tokenizer.located("xáx"), word_edges(tokenizer)
    assert len({token.number for token in tokens}) > len({token.start for token in tokens}) == 3
    assert [continues[token.number] for token in tokens][2:] == [True] * 3


@pytest.mark.parametrize(("word", "merges"), [("कि", 4), ("cafe\u0301s", 5)])
def test_a_mark_belongs_to_the_word_before_it(word: str, merges: int) -> None:
    """A vowel sign or an accent that is a token."""
    text = " ".join([word] * 9)
    tokenizer = _trained("bpe", 5 + 256 + merges, [text])
    assert len(tokenizer.located(word)) == len({token.start for token in tokenizer.located(word)})
    assert _words(tokenizer, text) == [word, *[f" {word}"] * 8]


def test_white_space_changes_nothing_about_wordpiece() -> None:
    tokenizer = _trained("wordpiece", 60)
    assert not any(word_edges(tokenizer)[1])
    assert _words(tokenizer, "the fox\njumps") == ["the", "fox", "jumps"]


@each_kind
def test_marks_of_unknown_words_fill_no_vocabulary(kind, size: int) -> None:
    marked, plain = (_trained(kind, size, [f"{mark} {text}" for text in TEXT]) for mark in ("<unk>", ""))
    assert marked.get_vocab() == plain.get_vocab()


@each_kind
@pytest.mark.parametrize("lowercase", [True, False])
def test_capitals_are_as_the_setting_says(tmp_path: Path, kind, size: int, lowercase: bool) -> None:
    settings = TokenizerSettings(kind=kind, vocab_size=size + 10 * (kind == "wordpiece"), lowercase=lowercase)
    tokenizer = train_tokenizer(settings, lambda: [*TEXT, *map(str.title, TEXT)])
    assert (tokenizer.encode("The Fox").ids == tokenizer.encode("the fox").ids) == lowercase
    save_tokenizer(tokenizer, tmp_path, lowercase)
    assert json.loads((tmp_path / "tokenizer_config.json").read_text())["do_lower_case"] == lowercase
    assert AutoTokenizer.from_pretrained(tmp_path)("The Fox")["input_ids"] == tokenizer.encode("The Fox").ids
