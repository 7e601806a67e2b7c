import math

import numpy as np
import pytest
import torch
from torch import Tensor

from retrace.objectives.language_modelling import masked_batches, mean_loss, sliding_batches
from retrace.perplexity.losses import document_losses
from retrace.tokens.tokenizer import Vocabulary
from tests.tiny import tiny_device

VOCABULARY = Vocabulary(9, 0, 1, 2, 3, 4)
# Each document is one token again and again, which the model gives 1/2, 1/4 and 1/8. No [CLS] or [SEP] is
# between them, so that a token counted one place off is counted to the wrong document.
LENGTHS = np.array([4, 9, 7])
STREAM = np.repeat([5, 6, 7], LENGTHS)
LOSSES = math.log(2) * np.array([1, 2, 3])


def _model(ids: Tensor, at: Tensor) -> Tensor:
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
    found = document_losses(_model, sliding_batches(STREAM, block, stride, VOCABULARY, 2), LENGTHS, tiny_device())
    assert found.scored.tolist() == asked
    assert found.sums == pytest.approx(LOSSES * asked)


@pytest.mark.parametrize(("block", "asked"), [(4, 15), (5, 16), (10, 18)])
def test_masked_losses_go_to_the_document_that_the_token_stands_in(block: int, asked: int) -> None:
    found = document_losses(_model, masked_batches(STREAM, block, 0.9, VOCABULARY, 2), LENGTHS, tiny_device())
    assert found.scored.sum() == asked
    assert (found.scored <= LENGTHS).all()
    assert found.sums == pytest.approx(LOSSES * found.scored)


def test_the_mean_is_mean_loss_to_the_bit() -> None:
    def batches():
        return masked_batches(STREAM, 6, 0.5, VOCABULARY, 2)

    found = document_losses(_model, batches(), LENGTHS, tiny_device())
    assert (found.mean, found.scored.sum()) == mean_loss(_model, batches(), tiny_device())
    assert found.mean == pytest.approx(found.sums.sum() / found.scored.sum(), rel=1e-6)
