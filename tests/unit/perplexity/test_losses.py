"""Losses by document, and by passage with one token masked at a time."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from retrace.core.errors import InputError
from retrace.models.language_model import LanguageModel, make_language_model
from retrace.objectives.language_modelling import masked_batches, mean_loss, sliding_batches
from retrace.perplexity.losses import Passage, document_losses, pseudo_losses, sample_passages
from retrace.perplexity.measures import figures_of
from retrace.tokens.settings import TokenizerSettings
from retrace.tokens.tokenizer import Vocabulary, train_tokenizer
from tests.sharded import STREAM, TOKENIZER, VOCABULARY
from tests.tiny import tiny_config, tiny_device

NINE = Vocabulary(9, 0, 1, 2, 3, 4)
# Each document is one token again and again, which the model gives 1/2, 1/4 and 1/8. No [CLS] or [SEP] is
# between them, so that a token counted one place off is counted to the wrong document.
LENGTHS = np.array([4, 9, 7])
REPEATED = np.repeat([5, 6, 7], LENGTHS)
LOSSES = math.log(2) * np.array([1, 2, 3])


def _scores(ids: Tensor, at: Tensor) -> Tensor:
    shares = torch.tensor([1 / 48] * 5 + [1 / 2, 1 / 4, 1 / 8, 1 / 48])
    return shares.log().expand(at.numel(), -1)


WINDOWS = [
    (20, 20, [3, 9, 7]),  # nothing goes before the first token
    (5, 2, [3, 9, 7]),
    (8, 3, [3, 9, 7]),
    (5, 5, [3, 7, 6]),  # nor before the first of each window
]


@pytest.mark.parametrize(("block", "stride", "asked"), WINDOWS)
def test_causal_losses_go_to_the_document_that_the_token_stands_in(block: int, stride: int, asked: list[int]) -> None:
    found = document_losses(_scores, sliding_batches(REPEATED, block, stride, NINE, 2), LENGTHS, tiny_device())
    assert found.scored.tolist() == asked
    assert found.sums == pytest.approx(LOSSES * asked)


@pytest.mark.parametrize(("block", "asked"), [(4, 15), (5, 16), (10, 18)])
def test_masked_losses_go_to_the_document_that_the_token_stands_in(block: int, asked: int) -> None:
    found = document_losses(_scores, masked_batches(REPEATED, block, 0.9, NINE, 2), LENGTHS, tiny_device())
    assert found.scored.sum() == asked
    assert (found.scored <= LENGTHS).all()
    assert found.sums == pytest.approx(LOSSES * found.scored)


def test_the_mean_is_mean_loss_to_the_bit() -> None:
    def batches():
        return masked_batches(REPEATED, 6, 0.5, NINE, 2)

    found = document_losses(_scores, batches(), LENGTHS, tiny_device())
    assert found.mean == mean_loss(_scores, batches(), tiny_device())
    assert found.scored.sum() == sum(batch.count for batch in batches())
    assert found.mean == pytest.approx(found.sums.sum() / found.scored.sum(), rel=1e-6)


def _model() -> LanguageModel:
    return make_language_model(tiny_config("modernbert", TOKENIZER), 0, "eager")


def test_a_passage_is_cut_between_words() -> None:
    """Each letter and each space is a token, one before the text included; two more begin and end it."""
    tokenizer, words = train_tokenizer(TokenizerSettings(kind="bpe", vocab_size=261), lambda: ["a b"]), set[float]()
    text = "the guild of weavers".split()
    for length in range(6, 24):
        (passage,) = sample_passages(iter([" ".join(text)]), tokenizer, 1, length, 0)
        assert len(passage.ids) <= length
        assert [passage.ids] == tokenizer.encode_documents([" ".join(text[: round(passage.words)])])
        words.add(passage.words)
    assert words == {1, 2, 3, 4}


def test_passages_are_short_enough_and_avoid_unknown_words() -> None:
    title = "= Title =\nthe guild of weavers was founded by Ada Lund\nthe <unk> of the town"
    passages = sample_passages(iter([title, "the river of the town"]), TOKENIZER, 10, 8, 0)
    assert len(passages) == 2
    for passage in passages:
        assert len(passage.ids) <= 8
        assert VOCABULARY.unknown not in passage.ids
        text = TOKENIZER.decode(passage.ids)
        assert (passage.words, passage.bytes) == (len(text.split()), len(text.encode()))


def test_a_long_word_is_not_cut_within_a_character() -> None:
    """A word of 語, which is three tokens."""
    tokenizer = train_tokenizer(TokenizerSettings(kind="bpe", vocab_size=261), lambda: ["a b"])
    for length in range(6, 12):
        (passage,) = sample_passages(iter(["語" * 50]), tokenizer, 1, length, 0)
        characters = (length - 3) // 3  # three tokens are a space and the special ones
        assert len(passage.ids) == 3 + 3 * characters
        assert (passage.bytes, passage.words) == (3 * characters, characters / 50)


def test_a_text_of_headings_has_passages_too() -> None:
    assert len(sample_passages(iter(["= the guild =\n= the river ="]), TOKENIZER, 10, 32, 0)) == 2


def test_a_passage_without_targets_counts_for_nothing() -> None:
    known, unknown = (sample_passages(iter([text]), TOKENIZER, 1, 32, 0)[0] for text in ("the river", "🙂 🙂"))
    model = _model().eval()
    alone, sizes = pseudo_losses(model, [known], VOCABULARY, tiny_device())
    both, more = pseudo_losses(model, [unknown, known], VOCABULARY, tiny_device())
    assert (both.scored[0], more.words[0]) == (0, 0)
    assert (both.mean, both.sums[1], more.words[1]) == (alone.mean, alone.sums[0], sizes.words[0])
    nothing = figures_of(*pseudo_losses(model, [unknown], VOCABULARY, tiny_device()))
    assert nothing.to_json() == {"perplexity_per_token": None, "perplexity_per_word": None, "bits_per_byte": None}


def test_a_loss_of_nan_is_not_reported() -> None:
    model = _model().eval()
    torch.nn.init.constant_(next(model.parameters()), torch.nan)
    passages = [Passage(TOKENIZER.encode("the river").ids, 2, 9)]
    with pytest.raises(InputError, match="loss on held-out text is nan"):
        pseudo_losses(model, passages, VOCABULARY, tiny_device())
    with pytest.raises(InputError, match="loss on held-out text is nan"):
        document_losses(model, masked_batches(STREAM, 32, 0.15, VOCABULARY), np.array([len(STREAM)]), tiny_device())


def test_some_of_many_paragraphs_are_drawn_in_the_order_of_the_text_by_the_seed() -> None:
    words = ("river", "town", "hall", "guild", "ale", "year", "weavers", "charming")
    texts = [f"the {word}" for word in words]

    def drawn(seed: int) -> list[str]:
        return [TOKENIZER.decode(passage.ids) for passage in sample_passages(iter(texts), TOKENIZER, 3, 32, seed)]

    found = [drawn(seed) for seed in range(6)]
    assert all(len(set(passages)) == 3 and set(passages) <= set(texts) for passages in found)
    assert all(passages == sorted(passages, key=texts.index) for passages in found)
    assert found[0] == drawn(0)
    assert len(set(map(tuple, found))) > 1
