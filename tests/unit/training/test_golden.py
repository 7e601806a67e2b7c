"""Ten-step losses per family and objective. A change of these figures changes every result: make it knowingly.

After such a change rewrite them: `python -m tests.unit.training.test_golden`.
"""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from retrace.objectives.language_modelling import Masking
from retrace.training.optimizer import make_optimizers
from retrace.training.settings import OptimizerSettings
from tests.sharded import VOCABULARY, start
from tests.tiny import FAMILIES, tiny_device

GOLDEN = Path(__file__).parents[2] / "golden" / "pretraining_losses.json"
WHOLE_WORDS = Masking(0.3, "80-10-10", torch.arange(VOCABULARY.size) % 3 == 0)
CASES = [*FAMILIES, "bert, pairs", "modernbert, whole words"]


def _losses(case: str) -> list[float]:
    family, _, kind = case.partition(", ")
    masking = WHOLE_WORDS if kind == "whole words" else Masking(0.3)
    device = tiny_device()
    model, objective = start(family, kind == "pairs", device, masking)
    optimizers = make_optimizers(model, OptimizerSettings(), 0.002)
    losses = []
    for _, batch in zip(range(10), objective.batches(1), strict=False):
        loss, count = objective.loss(model, objective.part(batch, slice(None), device)), objective.sizes(batch)[0]
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
    rows = [f"{json.dumps(case)}: {[round(loss, 5) for loss in _losses(case)]}" for case in CASES]
    GOLDEN.write_text("{\n" + ",\n".join(rows) + "\n}\n")
