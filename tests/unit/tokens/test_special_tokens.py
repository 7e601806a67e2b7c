import json
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


def _saved(folder: Path, published: Published, *left_out: str) -> Path:
    for name, content in published.files().items():
        if name not in left_out:
            (folder / name).write_bytes(content)
    return folder


@pytest.mark.parametrize(
    ("published", "expected"),
    [
        (tokenizers.bert(), BERT),
        (tokenizers.roberta(), ROBERTA),
        (tokenizers.modernbert(), BERT),
        (tokenizers.llama(), SpecialTokens(BEGIN, END, END, None, None)),
    ],
    ids=["bert", "roberta", "modernbert", "llama"],
)
def test_special_tokens_are_those_that_the_files_name(
    tmp_path: Path, published: Published, expected: SpecialTokens
) -> None:
    assert load_tokenizer(_saved(tmp_path, published)).special == expected
    for name in ("tokenizer_config.json", "special_tokens_map.json"):  # either is enough
        (tmp_path / name).unlink()
        assert load_tokenizer(_saved(tmp_path, published, name)).special == expected


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


def _llama(folder: Path, special: dict[str, str | None], *more: str) -> Path:
    tokenizer = tokenizers.llama().tokenizer
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in more])
    (folder / "tokenizer.json").write_text(tokenizer.to_str())
    (folder / "tokenizer_config.json").write_text(json.dumps(special))
    return folder


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


def test_no_token_that_ends_a_text(tmp_path: Path) -> None:
    _llama(tmp_path, {"bos_token": BEGIN, "eos_token": None})
    with pytest.raises(InputError, match=r"no token ends a text: .* names no sep_token or eos_token"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize(
    ("published", "pair"),
    [
        (tokenizers.bert(), "[CLS] a [SEP] b [SEP]"),
        (tokenizers.roberta(), "<s> a </s> </s> b </s>"),
        (tokenizers.modernbert(), "[CLS] a [SEP] b [SEP]"),
        (tokenizers.llama(), f"{BEGIN} a {BEGIN} b"),
    ],
    ids=["bert", "roberta", "modernbert", "llama"],
)
def test_two_texts_in_the_own_format_and_documents_with_both_ends(
    tmp_path: Path, published: Published, pair: str
) -> None:
    tokenizer = load_tokenizer(_saved(tmp_path, published))
    form, special = tokenizer.pair_format, tokenizer.special
    before, between, after = ([str(tokenizer.id_to_token(i)) for i in ids] for ids in vars(form).values())
    assert " ".join([*before, "a", *between, "b", *after]) == pair
    assert len(form) == len(pair.split()) - 2
    (document,) = tokenizer.encode_documents(["the guild of weavers"])
    inner = tokenizer.encode("the guild of weavers", add_special_tokens=False).ids
    assert document == [tokenizer.token_to_id(special.begin), *inner, tokenizer.token_to_id(special.end)]


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
