"""Ten-step losses per family and objective. What changes these figures changes every result: do it knowingly.

After such a change write them anew: `python -m tests.unit.training.test_golden`.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from retrace.models.language_model import make_language_model, make_pair_model
from retrace.objectives.language_modelling import BlockModelling, next_tokens
from retrace.objectives.masked import Masking, mask_blocks
from retrace.objectives.next_sentence import PairModelling
from retrace.tokens.tokenizer import Vocabulary
from retrace.training.optimizer import make_optimizers
from retrace.training.settings import OptimizerSettings
from tests.tiny import FAMILIES, tiny_config, tiny_device, tiny_stream, tiny_tokenizer

GOLDEN = Path(__file__).parents[2] / "golden" / "pretraining_losses.json"
TOKENIZER = tiny_tokenizer()
VOCABULARY = Vocabulary.of(TOKENIZER)
STREAM = tiny_stream(TOKENIZER)
MASKING = Masking(0.3)
CASES = [*FAMILIES, "bert, pairs", "modernbert, whole words"]


def _start(case: str) -> tuple[torch.nn.Module, Any]:
    """The model and what it learns."""
    family, device = case.split(",")[0], tiny_device()
    config, masking = tiny_config(family, TOKENIZER), MASKING
    if case.endswith("pairs"):
        model = make_pair_model(config, 0, "eager")
        return model, PairModelling(STREAM, TOKENIZER, 32, 8, MASKING, 1, device.torch_device)
    if case.endswith("whole words"):
        masking = Masking(0.3, "80-10-10", torch.arange(VOCABULARY.size) % 3 == 0)
    model = make_language_model(config, 0, "eager")
    if family == "llama":
        return model, BlockModelling(
            STREAM, 32, 8, lambda blocks, _: next_tokens(blocks, VOCABULARY), 1, device.torch_device
        )
    return model, BlockModelling(
        STREAM, 32, 8, lambda blocks, draws: mask_blocks(blocks, masking, VOCABULARY, draws), 1, device.torch_device
    )


def _losses(case: str) -> list[float]:
    model, objective = _start(case)
    optimizers = make_optimizers(model, OptimizerSettings(), 0.002)
    losses = []
    for _, batch in zip(range(10), objective.batches(1, slice(None)), strict=False):
        loss, count = objective.loss(model, batch)
        (loss / count).backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.item() / count)
    return losses


@pytest.mark.parametrize("case", CASES)
def test_losses_are_what_they_were(case: str) -> None:
    np.testing.assert_allclose(_losses(case), json.loads(GOLDEN.read_text())[case], rtol=2e-3)


if __name__ == "__main__":
    found = {case: [round(loss, 5) for loss in _losses(case)] for case in CASES}
    GOLDEN.write_text(json.dumps(found, indent=1) + "\n")
