"""The stage of pretraining as a whole, on a tiny text."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from retrace.core.files import write_json
from retrace.core.paths import CHECKPOINT, FACTS, TOKENIZER, TOKENS
from retrace.pretraining.run import model_and_objective, validation
from retrace.pretraining.settings import PretrainParams
from retrace.tokens.tokenizer import save_tokenizer
from retrace.training.loop import Epoch
from retrace.training.progress import Meter
from stages import pretrain
from tests.tiny import tiny_device, tiny_stream, tiny_tokenizer
from tests.toy import TOY, Project, copy_settings


def write_tokenized(folder: Path, train: np.ndarray, running_tokens: int) -> Project:
    """A project in this folder whose next stage is pretraining on these tokens: 8 blocks a batch of 64 tokens each."""
    project, tokenizer = copy_settings(folder), tiny_tokenizer()
    recipe: dict[str, Any] = {f"{name}.{key}": of for name in ("model", "pretrain") for key, of in TOY[name].items()}
    project.set_all({**recipe, "precision": "fp32"})
    for made in (TOKENIZER, TOKENS):
        (folder / made).mkdir(parents=True)
    save_tokenizer(tokenizer, folder / TOKENIZER, lowercase=True)
    for part, tokens in (("train", train), ("valid", tiny_stream(tokenizer)[:400])):
        np.save(folder / TOKENS / f"{part}.npy", tokens)
    write_json(folder / TOKENS / "counts.json", {"train": {"running_tokens": running_tokens}})
    write_json(folder / CHECKPOINT / FACTS, {"from": None})
    return project


@pytest.fixture
def tokenized(here: Path) -> Project:
    """The same in the current folder, on a text that occurs twice."""
    stream = tiny_stream(tiny_tokenizer())
    return write_tokenized(here, np.tile(stream, 2), len(stream))


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
    model, _ = model_and_objective(params, None, tokenizer, train, tiny_device())
    with Meter("test", 1, quiet=True) as meter:
        row = validation(params, tokenizer, valid, model.eval(), tiny_device())(Epoch(0, None, 0), meter)
    pretrain.main()
    first = pd.read_csv(pretrain.CURVES / "epochs.csv").iloc[0]
    assert (first["epoch"], first["updates"]) == (0, 0)
    assert first["validation_loss"] == pytest.approx(row["validation_loss"])
