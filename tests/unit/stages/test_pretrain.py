"""The stage of pretraining as a whole, on a tiny text."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from retrace.core.files import write_json
from retrace.core.paths import CHECKPOINT, FACTS, TOKENIZER, TOKENS
from retrace.pretraining.run import load, validation
from retrace.pretraining.settings import PretrainParams
from retrace.tokens.tokenizer import save_tokenizer
from retrace.training.loop import Epoch
from retrace.training.progress import Meter
from stages import pretrain
from tests.tiny import tiny_device, tiny_stream, tiny_tokenizer
from tests.toy import TOY, Project, copy_settings


@pytest.fixture
def tokenized(here: Path) -> Project:
    """A project whose next stage is pretraining: 8 blocks a batch of 64 tokens each."""
    project, tokenizer = copy_settings(here), tiny_tokenizer()
    recipe: dict[str, Any] = {f"{name}.{key}": of for name in ("model", "pretrain") for key, of in TOY[name].items()}
    project.set_all({**recipe, "precision": "fp32"})
    for folder in (TOKENIZER, TOKENS):
        folder.mkdir(parents=True)
    save_tokenizer(tokenizer, TOKENIZER, lowercase=True)
    stream = tiny_stream(tokenizer)
    for part, tokens in (("train", np.tile(stream, 2)), ("valid", stream[:400])):
        np.save(TOKENS / f"{part}.npy", tokens)
    write_json(TOKENS / "counts.json", {"train": {"running_tokens": len(stream)}})
    write_json(CHECKPOINT / FACTS, {"from": None})
    return project


@pytest.mark.parametrize(("most", "updates"), [(None, None), (1024, 2), (1025, 3)])
def test_training_ends_after_so_many_tokens(tokenized: Project, most: int | None, updates: int | None) -> None:
    """In whole batches of 512; or after the epochs."""
    tokenized.set("pretrain.max_tokens", most)
    pretrain.main()
    epochs = pd.read_csv(pretrain.CURVES / "epochs.csv")
    last = epochs.iloc[-1]
    assert last["updates"] == updates or (updates is None and last["updates"] == 2 * epochs.iloc[1]["updates"] > 6)
    assert last["validation_loss"] < epochs.iloc[0]["validation_loss"]


@pytest.mark.usefixtures("tokenized")
def test_the_curve_begins_with_the_loss_of_the_initial_model_on_the_validation_text() -> None:
    params, tokenizer = PretrainParams.read(), tiny_tokenizer()
    train, valid = (np.load(TOKENS / f"{part}.npy") for part in ("train", "valid"))
    model, _ = load(params, None, tokenizer, train, tiny_device())
    with Meter("test", 1, quiet=True) as meter:
        row = validation(params, tokenizer, valid, model.eval(), tiny_device())(Epoch(0, None, 0), meter)
    pretrain.main()
    first = pd.read_csv(pretrain.CURVES / "epochs.csv").iloc[0]
    assert (first["epoch"], first["updates"]) == (0, 0)
    assert first["validation_loss"] == pytest.approx(row["validation_loss"])
