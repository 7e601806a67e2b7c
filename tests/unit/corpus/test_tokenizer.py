import subprocess
import sys
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from stages.corpus.tokenizer import (
    TokenizerSettings,
    continuing_tokens,
    load_tokenizer,
    save_tokenizer,
    token_id,
    train_tokenizer,
    without_marks,
)
from stages.harness.errors import InputError
from tests.toy import ROOT

TEXT = ["the quick brown fox jumps over the lazy dog", "the slow brown bear sleeps under the old tree"] * 20


@pytest.mark.parametrize(("kind", "size"), [("wordpiece", 60), ("bpe", 290)])
def test_trains_saves_and_loads(tmp_path: Path, kind, size: int) -> None:
    tokenizer = train_tokenizer(TokenizerSettings(kind, size), lambda: TEXT, "k")
    assert tokenizer.get_vocab_size() == size
    save_tokenizer(tokenizer, tmp_path, lowercase=True)
    encoding = load_tokenizer(tmp_path).encode("The quick bear")
    assert encoding.tokens[0] == "[CLS]"
    assert encoding.tokens[-1] == "[SEP]"
    assert encoding.ids == AutoTokenizer.from_pretrained(tmp_path)("The quick bear")["input_ids"]


@pytest.mark.parametrize(("kind", "size"), [("wordpiece", 60), ("bpe", 290)])
def test_special_tokens_may_be_numbered_as_those_of_roberta(tmp_path: Path, kind, size: int) -> None:
    own, bert = (
        train_tokenizer(TokenizerSettings(kind, size, special=s), lambda: TEXT, "k") for s in ("roberta", "bert")
    )
    names = ["[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]"]
    assert [own.id_to_token(number) for number in range(5)] == names
    save_tokenizer(own, tmp_path, lowercase=True)
    assert load_tokenizer(tmp_path).roles == bert.roles
    assert own.encode("the quick bear").tokens == bert.encode("the quick bear").tokens


@pytest.mark.parametrize(("kind", "size"), [("wordpiece", 120), ("bpe", 290)])
def test_the_same_text_gives_the_same_tokenizer_in_every_process(kind: str, size: int) -> None:
    """The WordPiece trainer of the tokenizers library alone would not: it follows a hash table's order."""
    program = (
        "from stages.corpus.tokenizer import *; from tests.tiny import TEXT;"
        f"print(train_tokenizer(TokenizerSettings({kind!r}, {size}), lambda: TEXT, 'k').to_str())"
    )
    runs = [
        subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, check=True) for _ in range(4)
    ]
    assert len({run.stdout for run in runs}) == 1
    assert len(runs[0].stdout) > 1000


def test_a_vocabulary_that_the_corpus_cannot_fill() -> None:
    with pytest.raises(InputError, match=r"k: 5000 is more than the corpus can fill; expected at most \d+$"):
        train_tokenizer(TokenizerSettings("wordpiece", 5000), lambda: TEXT, "k")


def test_left_out_words_become_one_unknown_token() -> None:
    tokenizer = train_tokenizer(TokenizerSettings("wordpiece", 60), lambda: TEXT, "k")
    assert tokenizer.encode(without_marks("the <unk> fox", "[UNK]")).tokens.count("[UNK]") == 1


def test_a_given_tokenizer_must_say_what_begins_a_text(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(
        '{"version":"1.0","model":{"type":"WordLevel","vocab":{"a":0},"unk_token":"a"}}'
    )
    with pytest.raises(InputError, match=r"no token begins a text: .* names no cls_token or bos_token"):
        load_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(InputError, match="not a tokenizer"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("kind", ["wordpiece", "bpe"])
def test_tokens_that_go_on_with_a_word(kind) -> None:
    tokenizer = train_tokenizer(TokenizerSettings(kind, 290 if kind == "bpe" else 60), lambda: TEXT, "k")
    continues = continuing_tokens(tokenizer)
    words: list[str] = []
    for token in tokenizer.encode("browner overs lazy", add_special_tokens=False).tokens:
        letters = token.removeprefix("##").replace("Ġ", "")
        if continues[token_id(tokenizer, token)]:
            words[-1] += letters
        else:
            words.append(letters)
    assert words == ["browner", "overs", "lazy"]
