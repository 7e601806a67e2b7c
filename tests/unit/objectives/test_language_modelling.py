"""Batches of blocks: how many, where they begin, and how they are handed to a model."""

import numpy as np
import pytest
import torch

from retrace.core.errors import InputError
from retrace.objectives.language_modelling import (
    IGNORED,
    BlockModelling,
    LabelledBatch,
    Masking,
    mask_blocks,
    masked_batches,
    masked_of,
)
from retrace.tokens.tokenizer import Vocabulary
from tests.tiny import tiny_device, tiny_tokenizer


def _causal(stream: np.ndarray, block: int, batch_size: int) -> BlockModelling:
    return BlockModelling(stream, Vocabulary.of(tiny_tokenizer()), block, batch_size, None, 1)


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
    objective = BlockModelling(stream, Vocabulary.of(tiny_tokenizer()), 5, 2, None, 1, stream[:29], 2)
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
        BlockModelling(stream, Vocabulary.of(tiny_tokenizer()), 5, 2, None, 1, stream[:4], 2)


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
    labels = mask_blocks(blocks, Masking(rate), Vocabulary.of(tiny_tokenizer()), generator).labels
    assert (labels != IGNORED).sum() == masked_of(100, rate) == masked


def test_a_held_out_text_shorter_than_a_block_is_one_block() -> None:
    (found,) = masked_batches(np.arange(5, 35), 64, 0.2, Vocabulary.of(tiny_tokenizer()))
    assert found.ids.shape == (1, 30)
    assert (found.labels != IGNORED).sum() == 6


def test_the_first_word_of_a_document_is_masked_as_often_as_others() -> None:
    """As with RoBERTa's tokens: the first token of a word begins with a space, except in the first word of a text."""
    blocks = torch.tensor([2, 7, 8, 9, 3])  # the first and the last are special
    continues = torch.zeros(10, dtype=torch.bool)
    continues[7] = True
    masking, generator = Masking(0.4, continues=continues), torch.Generator().manual_seed(1)
    masked = mask_blocks(blocks.repeat(600, 1), masking, Vocabulary.of(tiny_tokenizer()), generator).labels != IGNORED
    assert masked[:, [0, 4]].sum() == 0
    for share in masked[:, 1:4].float().mean(0):  # two of three words
        assert share == pytest.approx(2 / 3, abs=0.08)
