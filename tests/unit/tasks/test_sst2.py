from pathlib import Path

import numpy as np
import pytest
import torch

from stages.tasks.sst2 import Sentiment
from tests.tiny import tiny_tokenizer


@pytest.fixture
def task(tmp_path: Path) -> Sentiment:
    (tmp_path / "sst2").mkdir()
    rows = "sentence\tlabel\nthe ale was stale\t0\nthe songs were charming and the hall was full .\t1\n"
    for part in ("train", "dev"):
        (tmp_path / "sst2" / f"{part}.tsv").write_text(rows)
    return Sentiment(tmp_path, tiny_tokenizer(), 8)


def test_sentences_are_cut_and_padded(task: Sentiment) -> None:
    examples = task.examples("dev")
    batch = task.collate(examples)
    assert max(task.length(example) for example in examples) == 8
    assert batch["ids"].shape == (2, 8)
    assert batch["mask"].sum(1).tolist() == [task.length(example) for example in examples]
    assert batch["labels"].tolist() == [0, 1]


def test_rows_hold_label_and_logits(task: Sentiment) -> None:
    rows = task.rows(task.examples("dev"), [np.array([1.0, 2.0]), np.array([3.0, -1.0])])
    assert rows == [
        {"id": 0, "label": 0, "logit_0": 1.0, "logit_1": 2.0},
        {"id": 1, "label": 1, "logit_0": 3.0, "logit_1": -1.0},
    ]


def test_the_loss_is_summed(task: Sentiment) -> None:
    loss, count = task.loss(torch.zeros(2, 2), task.collate(task.examples("dev")))
    assert loss.item() == pytest.approx(2 * np.log(2))
    assert count == 2
