import time

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM

from retrace.core.errors import InputError
from retrace.core.paths import PRETRAINED
from retrace.serving.predictor import _MASKS, WordModel
from retrace.tokens.tokenizer import token_id
from tests.tiny import MASKED_FAMILIES, tiny_pretrained, tiny_tokenizer

PARAMS = {"precision": "fp32"}
TOKENIZER = tiny_tokenizer()
pytestmark = pytest.mark.usefixtures("here")
CLS, SEP, MASK = (token_id(TOKENIZER, token) for token in ("[CLS]", "[SEP]", "[MASK]"))


def _ids(text: str) -> list[int]:
    return TOKENIZER.encode(text, add_special_tokens=False).ids


@torch.no_grad()
def _expected(of: type, ids: list[int], place: int) -> dict[str, float]:
    """What transformers says of the token at, or after, a place: word → probability, the likeliest five."""
    shares = of.from_pretrained(PRETRAINED).eval()(torch.tensor([ids])).logits[0, place].softmax(-1)  # pyright: ignore
    words = {TOKENIZER.decode([number]): share for number, share in enumerate(shares.tolist()) if number > MASK}
    return dict(sorted(words.items(), key=lambda item: -item[1])[:5])


@pytest.mark.parametrize("family", MASKED_FAMILIES)
def test_each_masked_word_gets_the_likeliest_tokens(family: str) -> None:
    tiny_pretrained(PRETRAINED, family)
    ids = [CLS, *_ids("the"), MASK, *_ids("of the town was the"), MASK, SEP]
    found = WordModel(PARAMS).suggestions("the [MASK] of the town was the ___")
    assert len(found) == 2
    for suggestions, place in zip(found, (2, len(ids) - 2), strict=True):
        expected = _expected(AutoModelForMaskedLM, ids, place)
        assert dict(suggestions) == pytest.approx(expected, abs=1e-5)
        assert [word for word, _ in suggestions] == list(expected)


def test_a_causal_model_goes_on_with_the_text() -> None:
    tiny_pretrained(PRETRAINED, "llama")
    ids = [CLS, *_ids("the river of the")]
    (found,) = WordModel(PARAMS).suggestions("the river of the")
    assert dict(found) == pytest.approx(_expected(AutoModelForCausalLM, ids, len(ids) - 1), abs=1e-5)


def test_what_cannot_be_filled_in_is_refused() -> None:
    tiny_pretrained(PRETRAINED, "bert")
    words = WordModel(PARAMS)
    with pytest.raises(InputError, match=r"text: no word is masked; write \[MASK\]"):
        words.suggestions("the town")
    with pytest.raises(InputError, match="tokens are too many; the model reads 64"):
        words.suggestions("the [MASK] " * 40)


def test_a_long_run_of_spaces_is_searched_in_a_moment() -> None:
    began = time.process_time()
    assert not _MASKS.search("a" + " " * 20_000 + "b")
    assert time.process_time() - began < 0.5
