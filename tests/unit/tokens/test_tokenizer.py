import subprocess
import sys
from pathlib import Path

import pytest
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
from transformers import AutoTokenizer

from retrace.core.errors import InputError
from retrace.core.settings import build
from retrace.tokens.settings import TokenizerSettings
from retrace.tokens.tokenizer import (
    SubwordTokenizer,
    load_tokenizer,
    save_tokenizer,
    token_id,
    train_tokenizer,
    word_edges,
)
from tests import tiny
from tests.toy import ROOT

TEXT = ["the quick brown fox jumps over the lazy dog", "the slow brown bear sleeps under the old tree"] * 20


@pytest.mark.parametrize(("kind", "size"), [("wordpiece", 60), ("bpe", 290)])
def test_trains_saves_and_loads(tmp_path: Path, kind, size: int) -> None:
    tokenizer = train_tokenizer(TokenizerSettings(kind=kind, vocab_size=size), lambda: TEXT, "k")
    assert tokenizer.get_vocab_size() == size
    save_tokenizer(tokenizer, tmp_path, lowercase=True)
    encoding = load_tokenizer(tmp_path).encode("The quick bear")
    assert encoding.tokens[0] == "[CLS]"
    assert encoding.tokens[-1] == "[SEP]"
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    assert encoding.ids == theirs("The quick bear")["input_ids"]
    names = (theirs.cls_token, theirs.sep_token, theirs.pad_token, theirs.unk_token, theirs.mask_token)
    assert names == ("[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]")
    with pytest.raises(InputError, match=r"none/tokenizer\.json: no such file$"):
        load_tokenizer(tmp_path / "none")


@pytest.mark.parametrize(("kind", "size"), [("wordpiece", 60), ("bpe", 290)])
def test_special_tokens_may_be_numbered_as_those_of_roberta(tmp_path: Path, kind, size: int) -> None:
    own, bert = (
        train_tokenizer(TokenizerSettings(kind=kind, vocab_size=size, special=s), lambda: TEXT, "k")
        for s in ("roberta", "bert")
    )
    names = ["[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]"]
    assert [own.id_to_token(number) for number in range(5)] == names
    save_tokenizer(own, tmp_path, lowercase=True)
    assert load_tokenizer(tmp_path).special == bert.special
    assert own.encode("the quick bear").tokens == bert.encode("the quick bear").tokens


def test_the_same_text_gives_the_same_tokenizer_in_every_process() -> None:
    """The WordPiece trainer of the tokenizers library alone would not: it follows a hash table's order."""
    program = f"""
from retrace.tokens.tokenizer import *
for kind, size in (("wordpiece", 120), ("bpe", 290)):
    print(train_tokenizer(TokenizerSettings(kind=kind, vocab_size=size), lambda: {tiny.TEXT!r}, "k").to_str())
"""
    runs = [
        subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, check=True) for _ in range(3)
    ]
    assert len({run.stdout for run in runs}) == 1
    assert len(runs[0].stdout) > 2000


@pytest.mark.parametrize(("kind", "size"), [("wordpiece", 5 + 5), ("bpe", 5 + 256)])
def test_what_occurs_twice_is_merged_and_what_occurs_once_is_not(kind, size: int) -> None:
    """Beside special tokens there are x, y, z, ##y and ##z, or bytes; of bytes a space is merged too."""
    settings = TokenizerSettings(kind=kind, vocab_size=size + (2 if kind == "wordpiece" else 3))
    twice = train_tokenizer(settings, lambda: ["xyz", "xyz"], "k")
    assert len(twice.encode("xyz", add_special_tokens=False).ids) == 1
    said = f"k: {settings.vocab_size} is more than the corpus can fill; expected at most {size}$"
    with pytest.raises(InputError, match=said):
        train_tokenizer(settings, lambda: ["xyz"], "k")


def test_a_vocabulary_has_more_than_the_special_tokens() -> None:
    message = r"tokenizer\.vocab_size: 5 is not allowed; expected a whole number above 5"
    with pytest.raises(InputError, match=message):
        build(TokenizerSettings, {"tokenizer": {"vocab_size": 5}}, "tokenizer")
    assert build(TokenizerSettings, {"tokenizer": {"vocab_size": 6}}, "tokenizer").vocab_size == 6


SPELT = ["the [CLS] fox [SEP]", "[MASK]", "the fox[PAD]over [UNK]", "<s> the </s> fox <mask>"]


@pytest.mark.parametrize(("kind", "size"), [("wordpiece", 60), ("bpe", 290)])
@pytest.mark.parametrize("loaded", [False, True])
def test_a_special_token_spelt_out_in_a_text_is_text(tmp_path: Path, kind, size: int, loaded: bool) -> None:
    tokenizer = train_tokenizer(TokenizerSettings(kind=kind, vocab_size=size), lambda: [*TEXT, *SPELT] * 2, "k")
    if loaded:
        save_tokenizer(tokenizer, tmp_path, lowercase=True)
        tokenizer = load_tokenizer(tmp_path)
    special = [token_id(tokenizer, token) for token in ("[PAD]", "[CLS]", "[SEP]", "[MASK]", "[UNK]")]
    begin, end = special[1:3]
    for text, ids in zip(SPELT, tokenizer.encode_documents(SPELT), strict=True):
        assert [number for number in ids if number in special] == [begin, end]
        assert tokenizer.encode(text).ids == ids
        assert tokenizer.encode(text, "the fox").ids[: len(ids)] == ids
        assert [token.number for token in tokenizer.located(text)] == ids[1:-1]
        assert tokenizer.encode_batch([text])[0].ids == ids


def test_a_given_tokenizer_may_not_call_its_tokens_special(tmp_path: Path) -> None:
    """RoBERTa's names, of which two are no special tokens in the file, as in some that are converted."""
    vocabulary = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": 4, "<": 5, "s": 6, ">": 7, "/": 8, "Ġ": 9}
    tokenizer = Tokenizer(models.BPE(vocabulary, [], unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.add_tokens([AddedToken("<s>"), AddedToken("</s>")])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    found = load_tokenizer(tmp_path)
    assert found.encode_documents(["<s> </s>"]) == [[0, 5, 6, 7, 9, 5, 8, 6, 7, 2]]
    assert found.encode("<s>", "s").ids == [0, 5, 6, 7, 2, 6, 2]


@pytest.mark.parametrize(("kind", "size"), [("wordpiece", 60), ("bpe", 290)])
def test_tokens_stand_where_their_text_does(kind, size: int) -> None:
    tokenizer = train_tokenizer(TokenizerSettings(kind=kind, vocab_size=size), lambda: TEXT, "k")
    text = "The <unk> fox\njumps<unk> over 🙂 dogs"
    located = tokenizer.located(text)
    assert [[token.number for token in located]] == [ids[1:-1] for ids in tokenizer.encode_documents([text])]
    left_out = [text[token.start : token.end] for token in located if token.number == token_id(tokenizer, "[UNK]")]
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
    lines = ["the end\nthe start\tthe\u3000dog\n\nthe\r\nend"] * 20
    tokenizer = train_tokenizer(TokenizerSettings(kind="bpe", vocab_size=276), lambda: lines, "k")
    assert [word for word in _words(tokenizer, lines[0]) if not word.isspace()] == [
        "the", " end", "the", " start", "the", "dog", "the", "end"
    ]  # fmt: skip


def test_a_character_of_several_tokens_is_in_one_word() -> None:
    # á is the bytes C3 and A1
    tokenizer = train_tokenizer(TokenizerSettings(kind="bpe", vocab_size=262), lambda: ["ab " * 9], "k")
    tokens = {token.number for token in tokenizer.located("xáx")}
    assert len(tokens) > 3
    assert len({token.start for token in tokenizer.located("xáx")}) == 3
    continues, _ = word_edges(tokenizer)
    assert [continues[token.number] for token in tokenizer.located("xáx")][2:] == [True] * 3


def test_white_space_changes_nothing_about_wordpiece() -> None:
    tokenizer = train_tokenizer(TokenizerSettings(kind="wordpiece", vocab_size=60), lambda: TEXT, "k")
    assert not any(word_edges(tokenizer)[1])
    assert _words(tokenizer, "the fox\njumps") == ["the", "fox", "jumps"]


@pytest.mark.parametrize(("kind", "size"), [("wordpiece", 60), ("bpe", 290)])
def test_marks_of_unknown_words_fill_no_vocabulary(kind, size: int) -> None:
    marked, plain = (
        train_tokenizer(
            TokenizerSettings(kind=kind, vocab_size=size), lambda mark=mark: [f"{mark} {text}" for text in TEXT], "k"
        )
        for mark in ("<unk>", "")
    )
    assert marked.get_vocab() == plain.get_vocab()
