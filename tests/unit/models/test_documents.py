"""Attention within documents."""

import pytest
import torch

from retrace.models.heads import make_config
from retrace.models.language_model import LanguageModel, make_language_model, read_language_model
from retrace.tokens.tokenizer import Vocabulary
from tests.tiny import FAMILIES, MODEL, tiny_tokenizer

VOCABULARY = Vocabulary.of(tiny_tokenizer())
CLS, SEP = VOCABULARY.begin, VOCABULARY.end
FIRST, SECOND = [CLS, 20, 21, 22, SEP], [CLS, 30, 31, SEP]


def _model(family: str, attention: str, within: bool = True) -> LanguageModel:
    config = make_config(family, MODEL, VOCABULARY)
    if within:
        config.document_start = CLS
    return make_language_model(config, 0, attention).eval()


def _scores(model: LanguageModel, ids: list[int], row: slice) -> torch.Tensor:
    with torch.no_grad():
        return model(torch.tensor([ids]), torch.arange(len(ids))[row])


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_document_is_read_as_if_it_stood_alone_in_the_block(family: str, attention: str) -> None:
    model, row = _model(family, attention), slice(0, len(FIRST))
    torch.testing.assert_close(_scores(model, FIRST + SECOND, row), _scores(model, FIRST, row))
    other = [CLS, 40, 41, SEP]
    last = slice(len(FIRST), None)
    changed = [CLS, 25, 26, 27, SEP]
    assert torch.equal(_scores(model, FIRST + SECOND, last), _scores(model, changed + SECOND, last))
    assert not torch.equal(_scores(model, FIRST + SECOND, last), _scores(model, FIRST + other, last))


def test_without_the_setting_documents_see_one_another() -> None:
    model, row = _model("modernbert", "eager", within=False), slice(0, len(FIRST))
    assert not torch.allclose(_scores(model, FIRST + SECOND, row), _scores(model, FIRST, row))


def test_the_setting_is_saved_with_the_model(tmp_path) -> None:
    model = _model("modernbert", "eager")
    model.body.save_pretrained(tmp_path)
    again = read_language_model(tmp_path, 0, "eager").eval()
    row = slice(0, len(FIRST))
    assert torch.equal(_scores(again, FIRST + SECOND, row), _scores(model, FIRST + SECOND, row))
