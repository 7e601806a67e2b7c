import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from tokenizers import AddedToken, Tokenizer
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
    ids=["bert", "roberta", "modernbert", "llama"],
)
def test_the_files_name_special_tokens_and_documents_have_both_ends_whatever_the_format(
    tmp_path: Path, published: Published, special: SpecialTokens, pair: str
) -> None:
    for missing in (None, "tokenizer_config.json", "special_tokens_map.json"):  # either is enough
        if missing:
            (tmp_path / missing).unlink()
        tokenizer = load_tokenizer(_saved(tmp_path, published, missing))
        assert tokenizer.special == special
    form = tokenizer.pair_format
    before, between, after = ([str(tokenizer.id_to_token(i)) for i in ids] for ids in vars(form).values())
    assert " ".join([*before, "a", *between, "b", *after]) == pair
    assert tokenizer.num_special_tokens_to_add(True) == len(pair.split()) - 2
    assert tokenizer.num_special_tokens_to_add(False) == len(tokenizer.encode("").ids)
    (document,) = tokenizer.encode_documents(["the guild of weavers"])
    inner = tokenizer.encode("the guild of weavers", add_special_tokens=False).ids
    assert document == [tokenizer.token_to_id(special.begin), *inner, tokenizer.token_to_id(special.end)]


@pytest.mark.parametrize(("published", "expected"), [(tokenizers.bert(), BERT), (tokenizers.roberta(), ROBERTA)])
def test_bert_and_roberta_were_published_without_names(
    tmp_path: Path, published: Published, expected: SpecialTokens
) -> None:
    _saved(tmp_path, published, "special_tokens_map.json")
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": true, "model_max_length": 512}')
    assert load_tokenizer(tmp_path).special == expected


def test_a_token_may_be_written_with_how_it_is_matched(tmp_path: Path) -> None:
    _saved(tmp_path, tokenizers.modernbert(), "special_tokens_map.json")
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    config |= {"mask_token": {"content": "[MASK]", "lstrip": True}, "unk_token": 5, "do_lower_case": True}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    assert load_tokenizer(tmp_path).special == BERT


def _llama(folder: Path, special: Mapping[str, str | None], *more: str) -> None:
    tokenizer = tokenizers.llama().tokenizer
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in more])
    (folder / "tokenizer.json").write_text(tokenizer.to_str())
    (folder / "tokenizer_config.json").write_text(json.dumps(special))


def test_special_ids_are_each_given_once_and_only_of_tokens_that_there_are(tmp_path: Path) -> None:
    bert = load_tokenizer(_saved(tmp_path, tokenizers.bert()))
    ids = [token_id(bert, name) for name in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")]
    found = Vocabulary.of(bert)
    assert (found.special, found.size) == (tuple(ids), bert.get_vocab_size())
    llama = load_tokenizer(_saved(tmp_path, tokenizers.llama()))
    begin, end = token_id(llama, BEGIN), token_id(llama, END)
    found = Vocabulary.of(llama)
    assert (found.pad, found.unknown, found.begin, found.end, found.mask) == (end, None, begin, end, None)
    assert found.special == (end, begin)


def test_llamas_own_padding_and_one_token_for_everything_which_marks_nothing_unknown(tmp_path: Path) -> None:
    _llama(tmp_path, {"bos_token": BEGIN, "eos_token": END, "pad_token": None}, RIGHT_PAD)
    assert load_tokenizer(tmp_path).special == SpecialTokens(BEGIN, END, RIGHT_PAD, None, None)
    _llama(tmp_path, {"bos_token": END, "eos_token": END, "unk_token": END, "pad_token": "<not there>"})
    assert load_tokenizer(tmp_path).special == SpecialTokens(END, END, END, None, None)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ({"bos_token": BEGIN}, r"no token ends a text: .* names no sep_token or eos_token"),
        ({"eos_token": END}, r"no token begins a text: .* names no cls_token or bos_token"),
    ],
)
def test_no_token_that_begins_or_ends_a_text(tmp_path: Path, names: dict[str, str], said: str) -> None:
    _llama(tmp_path, names)
    with pytest.raises(InputError, match=said):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("form", [None, ("$A", "$A {begin} $B"), ("{begin} $A", "{begin} $A $B")])
def test_a_tokenizer_that_adds_nothing_before_or_between_gets_berts_format(
    tmp_path: Path, form: tuple[str, str] | None
) -> None:
    tokenizer = tokenizers.llama().tokenizer
    if form:
        single, pair = (text.format(begin=BEGIN) for text in form)
        begins = [(BEGIN, tokenizer.token_to_id(BEGIN))]
        tokenizer.post_processor = TemplateProcessing(single=single, pair=pair, special_tokens=begins)
    bare = json.loads(tokenizer.to_str()) | {"truncation": None}
    bare |= {} if form else {"post_processor": None}
    bare["padding"] = {"strategy": {"Fixed": 40}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0,
                       "pad_type_id": 0, "pad_token": "!"}  # fmt: skip
    (tmp_path / "tokenizer.json").write_text(json.dumps(bare))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"bos_token": BEGIN, "eos_token": END}))
    assert len(Tokenizer.from_file(str(tmp_path / "tokenizer.json")).encode("the").ids) == 40
    assert load_tokenizer(tmp_path).encode("the", "of").tokens == [BEGIN, "the", END, "of", END]
