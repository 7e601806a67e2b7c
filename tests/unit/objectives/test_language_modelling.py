"""Batches of blocks: how many, where they begin, what is masked in them, and how they are handed to a model."""

from dataclasses import replace
from itertools import pairwise
from typing import cast

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from retrace.compute.tensors import seeded
from retrace.core.errors import InputError
from retrace.models.language_model import make_language_model
from retrace.objectives.language_modelling import (
    IGNORED,
    BlockModelling,
    LabelledBatch,
    Masking,
    mask_blocks,
    masked_batches,
    masked_of,
    mean_loss,
    next_tokens,
    sliding_batches,
)
from retrace.tokens.settings import TokenizerSettings
from retrace.tokens.tokenizer import Vocabulary, token_id, train_tokenizer, word_edges
from tests.sharded import TOKENIZER, VOCABULARY
from tests.tiny import tiny_config, tiny_device


def _causal(stream: np.ndarray, block: int, batch_size: int) -> BlockModelling:
    return BlockModelling(stream, VOCABULARY, block, batch_size, None, 1)


def test_every_batch_is_full_wherever_the_epoch_begins() -> None:
    """Eight blocks fit the stream, and seven from any place but its beginning: one batch of four, not two."""
    objective = _causal(np.arange(8 * 5), 5, 4)
    assert objective.steps == 1
    for epoch in range(20):
        (batch,) = objective.batches(epoch)
        starts = batch.ids[:, 0]
        assert torch.equal(batch.ids, starts[:, None] + torch.arange(5))
        assert starts.tolist() == sorted(set(starts.tolist()))  # in the order of the file, each once
        assert (starts % 5).unique().numel() == 1
    assert _causal(np.arange(9 * 5), 5, 4).steps == 2


def test_an_epoch_begins_anywhere_that_leaves_a_block() -> None:
    for tokens, places in ((32, {0}), (33, {0}), (36, {0, 1, 2, 3}), (99, set(range(32)))):
        objective = _causal(np.arange(tokens), 32, 1)
        found = {int(batch.ids[0, 0]) % 32 for epoch in range(400) for batch in objective.batches(epoch)}
        assert found == places


def test_the_last_epochs_are_of_their_own_text_in_several_passes() -> None:
    """Two epochs of eight steps over everything, then eight over five blocks: four passes of two."""
    stream = np.arange(9 * 5 * 2)
    objective = BlockModelling(stream, VOCABULARY, 5, 2, None, 1, stream[:29], 2)
    assert objective.steps == 8
    for epoch in (1, 2):
        starts = torch.cat([batch.ids[:, 0] for batch in objective.batches(epoch)])
        assert len(starts.unique()) == 16
        assert starts.max() >= 30
    batches = list(objective.batches(3))
    assert len(batches) == 8
    passes = torch.cat([batch.ids[:, 0] for batch in batches]).view(4, 4)
    assert passes.max() <= 25
    for starts in passes:
        assert len(starts.unique()) == 4
        assert len((starts % 5).unique()) == 1
    assert len((passes[:, 0] % 5).unique()) > 1
    with pytest.raises(InputError, match="the text has 4 tokens, which do not fill one block of 5"):
        BlockModelling(stream, VOCABULARY, 5, 2, None, 1, stream[:4], 2)


def test_a_compiled_model_gets_few_numbers_of_targets() -> None:
    """Ten of 2 × 256 tokens: rounded up to a multiple of 32, by first positions without a target."""
    labels = torch.full((2, 256), IGNORED)
    labels[0, :7], labels[1, 250:253] = 5, 6
    batch = LabelledBatch(torch.arange(512).view(2, 256), labels)
    plain, padded = batch.to(tiny_device()), batch.to(tiny_device(), rounded=True)
    assert plain.at.tolist() == [*range(7), *range(506, 509)]
    assert plain.targets.tolist() == [5] * 7 + [6] * 3
    assert padded.at.tolist() == [*plain.at.tolist(), *[0] * 22]
    assert padded.targets.tolist() == [*plain.targets.tolist(), *[IGNORED] * 22]
    labels[1, 253:257], labels[0, 6] = 6, IGNORED  # six in each row, but another number in the next batch
    assert (batch.to(tiny_device()).at.shape, batch.to(tiny_device(), rounded=True).at.shape) == ((2, 6), (32,))


@pytest.mark.parametrize(("rate", "masked"), [(0.29, 29), (0.3, 30), (0.299, 29), (0.001, 1)])
def test_a_share_that_is_a_whole_number_of_tokens_is_not_one_less(rate: float, masked: int) -> None:
    blocks, generator = torch.full((1, 100), 9), torch.Generator().manual_seed(1)
    labels = mask_blocks(blocks, Masking(rate), VOCABULARY, generator).labels
    assert (labels != IGNORED).sum() == masked_of(100, rate) == masked


def test_a_held_out_text_shorter_than_a_block_is_one_block() -> None:
    (found,) = masked_batches(np.arange(5, 35), 64, 0.2, VOCABULARY)
    assert found.ids.shape == (1, 30)
    assert (found.labels != IGNORED).sum() == 6


def test_the_first_word_of_a_document_is_masked_as_often_as_others() -> None:
    """As with RoBERTa's tokens: the first token of a word begins with a space, except in the first word of a text."""
    blocks = torch.tensor([2, 7, 8, 9, 3])  # the first and the last are special
    continues = torch.zeros(10, dtype=torch.bool)
    continues[7] = True
    masking, generator = Masking(0.4, continues=continues), torch.Generator().manual_seed(1)
    masked = mask_blocks(blocks.repeat(600, 1), masking, VOCABULARY, generator).labels != IGNORED
    assert masked[:, [0, 4]].sum() == 0
    for share in masked[:, 1:4].float().mean(0):  # two of three words
        assert share == pytest.approx(2 / 3, abs=0.08)


@given(st.integers(8, 64), st.integers(5, 90), st.integers(0, 99))
@settings(max_examples=50)
def test_a_fixed_share_is_masked_and_never_a_special_token(length: int, percent: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    blocks = torch.randint(0, VOCABULARY.size, (4, length), generator=generator)
    masked = mask_blocks(blocks, Masking(percent / 100), VOCABULARY, generator)
    chosen = masked.labels != IGNORED
    ordinary = ~torch.isin(blocks, torch.tensor(VOCABULARY.special))
    counts = torch.tensor([max(1, real * percent // 100) for real in (blocks != VOCABULARY.pad).sum(1).tolist()])
    assert (chosen.sum(1) == torch.minimum(counts, ordinary.sum(1))).all()
    assert torch.equal(masked.ids, torch.where(chosen, cast(int, VOCABULARY.mask), blocks))
    assert (masked.labels[chosen] == blocks[chosen]).all()
    assert not (chosen & ~ordinary).any()


@given(st.integers(8, 64), st.integers(10, 60), st.integers(0, 99))
@settings(max_examples=50)
def test_words_are_masked_as_a_whole(length: int, percent: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    blocks = torch.randint(5, VOCABULARY.size, (4, length), generator=generator)
    continues = torch.arange(VOCABULARY.size) % 3 == 0
    masking = Masking(percent / 100, continues=continues)
    chosen = mask_blocks(blocks, masking, VOCABULARY, generator).labels != IGNORED
    count = max(1, length * percent // 100)
    for block, here in zip(blocks, chosen, strict=True):
        starts = [0, *(at for at in range(1, length) if not continues[block[at]]), length]
        words = [here[start:end] for start, end in pairwise(starts)]
        longest = max(len(word) for word in words)
        if longest <= count:
            assert all(word.all() or not word.any() for word in words)
            assert count - longest < here.sum() <= count
        assert here.any()


def test_a_word_after_a_line_break_is_masked_without_the_one_before() -> None:
    lines = ["the river of the town .\nthe ale\tof the hall"] * 60
    tokenizer = train_tokenizer(TokenizerSettings(kind="bpe", vocab_size=282), lambda: lines)
    continues, closes = map(torch.tensor, word_edges(tokenizer))
    ids = torch.tensor(tokenizer.encode_documents(lines))
    masking = Masking(0.3, continues=continues, closes=closes)
    chosen = mask_blocks(ids, masking, Vocabulary.of(tokenizer), seeded(0, "masks")).labels != IGNORED
    for letter in "Ċĉ":
        (at,) = torch.nonzero(ids[0] == token_id(tokenizer, letter))[:, 0].tolist()
        neighbours = [(chosen[:, at] == chosen[:, at + step]).float().mean().item() for step in (-1, 1)]
        assert all(same < 0.8 for same in neighbours)
        assert chosen[:, at].any()


def test_berts_masks_are_mostly_masks_and_some_are_any_token_but_a_special_one() -> None:
    """8 in 10 of 4,000 tokens become the mask, 1 stays the same, and 1 becomes one of four, possibly the same."""
    vocabulary = Vocabulary(9, 8, 3, 0, 2, 4)
    masked = mask_blocks(torch.ones((200, 40), dtype=torch.int64), Masking(0.5, "80-10-10"), vocabulary, seeded(0, ""))
    assert (masked.ids[masked.labels == IGNORED] == 1).all()
    ids, counts = masked.ids[masked.labels == 1].unique(return_counts=True)
    assert ids.tolist() == [1, vocabulary.mask, 5, 6, 7]
    assert counts[:2].tolist() == pytest.approx([500, 3200], abs=80)
    assert counts[2:].tolist() == pytest.approx([100] * 3, abs=30)


def test_each_epoch_is_masked_anew_and_reproducibly() -> None:
    """Blocks of the same token again and again, so that nothing but their masks can differ."""
    objective = BlockModelling(np.full(9 * 40, 20), VOCABULARY, 40, 4, Masking(0.3), 1)
    one, again, two = (list(objective.batches(epoch)) for epoch in (1, 1, 2))
    assert len(one) == len(two) == objective.steps == 2
    assert all(torch.equal(a.ids, b.ids) for a, b in zip(one, again, strict=True))
    assert not any(torch.equal(one[0].ids, other.ids) for other in (one[1], *two))


def test_masking_needs_a_mask_token() -> None:
    blocks = torch.full((1, 8), 20)
    with pytest.raises(InputError, match="the tokenizer has no mask"):
        mask_blocks(blocks, Masking(0.3), replace(VOCABULARY, mask=None), seeded(0, "test"))


def test_each_label_is_the_next_token() -> None:
    blocks = torch.tensor([[VOCABULARY.begin, 10, 11, VOCABULARY.unknown, 12, VOCABULARY.end]])
    labelled = next_tokens(blocks, VOCABULARY)
    assert torch.equal(labelled.ids, blocks)
    assert labelled.labels.tolist() == [[10, 11, IGNORED, 12, IGNORED, IGNORED]]


@given(st.integers(2, 40), st.integers(1, 40), st.integers(41, 200), st.integers(1, 5))
@settings(max_examples=50)
def test_sliding_windows_predict_each_token_once(block: int, stride: int, length: int, batch: int) -> None:
    stride = min(stride, block - 1)
    stream = np.arange(5, 5 + length)
    asked = []
    for labelled in sliding_batches(stream, block, stride, Vocabulary(300, 0, 1, 2, 3, 4), batch):
        for ids, labels in zip(labelled.ids, labelled.labels, strict=True):
            places = torch.nonzero(labels != IGNORED)[:, 0]
            assert torch.equal(labels[places], ids[places] + 1)
            if asked:
                assert places[0] + 1 >= block - stride
            asked += labels[places].tolist()
    assert asked == list(range(6, 5 + length))


def test_a_mean_loss_without_targets_is_an_input_error() -> None:
    model = make_language_model(tiny_config("modernbert", TOKENIZER), 0, "eager")
    nothing = [LabelledBatch(torch.zeros(1, 4, dtype=torch.long), torch.full((1, 4), IGNORED))]
    with pytest.raises(InputError, match="no token to predict"):
        mean_loss(model.eval(), nothing, tiny_device())
