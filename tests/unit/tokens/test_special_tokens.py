import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import AddedToken
from tokenizers.processors import TemplateProcessing

from retrace.core.errors import InputError
from retrace.tokens.settings import SpecialTokens
from retrace.tokens.tokenizer import RIGHT_PAD, Vocabulary, load_tokenizer, token_id
from tests.hub.content import tokenizers
from tests.hub.content.tokenizers import Published

BERT = SpecialTokens("[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]")
ROBERTA = SpecialTokens("<s>", "</s>", "<pad>", "<unk>", "<mask>")
BEGIN, END = "<|begin_of_text|>", "<|end_of_text|>"


def _saved(folder: Path, published: Published, left_out: str | None = None) -> Path:
    for name, content in published.files().items():
        if name != left_out:
            (folder / name).write_bytes(content)
    return folder


@pytest.mark.parametrize(
    ("published", "special", "pair"),
    [
        (tokenizers.bert(), BERT, "[CLS] a [SEP] b [SEP]"),
        (tokenizers.roberta(), ROBERTA, "<s> a </s> </s> b </s>"),
        (tokenizers.modernbert(), BERT, "[CLS] a [SEP] b [SEP]"),
        (tokenizers.llama(), SpecialTokens(BEGIN, END, END, None, None), f"{BEGIN} a {BEGIN} b"),
    ],
)
def test_files_name_special_tokens(tmp_path: Path, published: Published, special: SpecialTokens, pair: str) -> None:
    """And documents have both ends, whatever the format."""
    for missing in (None, "tokenizer_config.json", "special_tokens_map.json"):  # either is enough
        if missing:
            (tmp_path / missing).unlink()
        tokenizer = load_tokenizer(_saved(tmp_path, published, missing))
        assert tokenizer.special == special
    before, between, after = ([*map(tokenizer.id_to_token, ids)] for ids in vars(tokenizer.pair_format).values())
    assert [*before, "a", *between, "b", *after] == pair.split()
    assert tokenizer.num_special_tokens_to_add(True) == len(pair.split()) - 2
    assert tokenizer.num_special_tokens_to_add(False) == len(tokenizer.encode("").ids)
    (document,) = tokenizer.encode_documents(["the guild of weavers"])
    inner = tokenizer.encode("the guild of weavers", add_special_tokens=False).ids
    assert document == [tokenizer.token_to_id(special.begin), *inner, tokenizer.token_to_id(special.end)]


@pytest.mark.parametrize(("published", "expected"), [(tokenizers.bert(), BERT), (tokenizers.roberta(), ROBERTA)])
def test_bert_and_roberta_may_name_none(tmp_path: Path, published: Published, expected: SpecialTokens) -> None:
    """As they were published."""
    _saved(tmp_path, published, "special_tokens_map.json")
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": true, "model_max_length": 512}')
    assert load_tokenizer(tmp_path).special == expected


def test_a_token_may_be_written_with_how_it_is_matched(tmp_path: Path) -> None:
    _saved(tmp_path, tokenizers.modernbert(), "special_tokens_map.json")
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    config |= {"mask_token": {"content": "[MASK]", "lstrip": True}, "unk_token": 5, "do_lower_case": True}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    assert load_tokenizer(tmp_path).special == BERT


def _write(folder: Path, tokenizer: Any, **special: str | None) -> Path:
    (folder / "tokenizer.json").write_text(tokenizer.to_str())
    (folder / "tokenizer_config.json").write_text(json.dumps(special))
    return folder


def test_special_ids_are_each_given_once_and_only_of_tokens_that_there_are(tmp_path: Path) -> None:
    bert = load_tokenizer(_saved(tmp_path, tokenizers.bert()))
    ids = [token_id(bert, name) for name in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")]
    assert Vocabulary.of(bert) == Vocabulary(bert.get_vocab_size(), *ids)
    assert Vocabulary.of(bert).special == tuple(ids)
    llama = load_tokenizer(_saved(tmp_path, tokenizers.llama()))
    begin, end = token_id(llama, BEGIN), token_id(llama, END)
    assert Vocabulary.of(llama) == Vocabulary(llama.get_vocab_size(), end, None, begin, end, None)
    assert Vocabulary.of(llama).special == (end, begin)


def test_llamas_own_padding_and_one_token_for_everything_which_marks_nothing_unknown(tmp_path: Path) -> None:
    llama = tokenizers.llama().tokenizer
    _write(tmp_path, llama, bos_token=END, eos_token=END, unk_token=END, pad_token="<not there>")
    assert load_tokenizer(tmp_path).special == SpecialTokens(END, END, END, None, None)
    llama.add_special_tokens([AddedToken(RIGHT_PAD, special=True)])
    _write(tmp_path, llama, bos_token=BEGIN, eos_token=END, pad_token=None)
    assert load_tokenizer(tmp_path).special == SpecialTokens(BEGIN, END, RIGHT_PAD, None, None)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("bos_token", "no token ends a text: .* names no sep_token or eos_token"),
        ("eos_token", "no token begins a text: .* names no cls_token or bos_token"),
    ],
)
def test_no_token_that_begins_or_ends_a_text(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        load_tokenizer(_write(tmp_path, tokenizers.llama().tokenizer, **{name: END}))


@pytest.mark.parametrize("form", [None, ("$A", "$A begin $B"), ("begin $A", "begin $A $B")])
def test_a_format_that_adds_nothing_there_becomes_berts(tmp_path: Path, form: tuple[str, str] | None) -> None:
    """Nothing before a text, or nothing between two. Nor does a tokenizer pad, whatever its file says."""
    llama: Any = tokenizers.llama().tokenizer
    single, pair = (text.replace("begin", BEGIN) for text in form or ("", ""))
    begins = [(BEGIN, llama.token_to_id(BEGIN))]
    llama.post_processor = form and TemplateProcessing(single=single, pair=pair, special_tokens=begins)
    llama.enable_padding(length=40)
    _write(tmp_path, llama, bos_token=BEGIN, eos_token=END)
    assert load_tokenizer(tmp_path).encode("the", "of").tokens == [BEGIN, "the", END, "of", END]


def test_the_config_counts_more_than_the_map_of_special_tokens(tmp_path: Path) -> None:
    _write(tmp_path, tokenizers.llama().tokenizer, bos_token=BEGIN, eos_token=END)
    (tmp_path / "special_tokens_map.json").write_text(json.dumps({"bos_token": END, "eos_token": BEGIN}))
    assert load_tokenizer(tmp_path).special == SpecialTokens(BEGIN, END, END, None, None)
