import re
from pathlib import Path
from typing import Any, cast

import pytest
from torch import nn

from retrace.core.errors import InputError
from retrace.core.paths import PRETRAINED
from retrace.finetuning.method import read_method
from retrace.finetuning.run import adjusted
from retrace.finetuning.settings import FineTuneSettings, entry_in_force
from retrace.methods import full, lora
from retrace.training.settings import OptimizerSettings

PARAMS = {
    "methods": {
        "full": {"lr_factor": 2},
        "roberta": {"method": "full", "checkpoint": "roberta-base"},
        "thin": {"method": "lora", "rank": 4},
        "wrong": {"method": "prefix"},
        "lora": {"rank": 8, "lr_factor": 3, "per_task": {"squad": {"rank": 2}}},
    }
}


def test_an_entry_with_the_name_of_a_method_is_that_method() -> None:
    """Its stage depends on that method's file alone, so that edits of another one would rerun nothing."""
    with pytest.raises(InputError, match=r"methods\.lora\.method: 'adapter' is not allowed; lora is a method itself$"):
        read_method({"methods": {"lora": {"method": "adapter"}}}, "lora")


def test_an_entry_names_its_file_its_checkpoint_and_its_settings() -> None:
    here, given, thin = (read_method(PARAMS, label) for label in ("full", "roberta", "thin"))
    assert (here.tuning, here.file, here.base, here.settings.lr_factor) == (full, "full", PRETRAINED, 2)
    assert (given.tuning, given.file, given.base) == (full, "full", Path("data/checkpoints/roberta-base"))
    assert (thin.base, thin.settings) == (PRETRAINED, lora.Settings(method="lora", rank=4))
    assert read_method({}, "lora").settings == lora.Settings()


def test_a_method_may_have_other_settings_for_a_task() -> None:
    chosen = {task: read_method(PARAMS, "lora", task).settings for task in (None, "sst2", "squad")}
    assert chosen[None] == chosen["sst2"] == lora.Settings(rank=8, lr_factor=3)
    assert chosen["squad"] == lora.Settings(rank=2, lr_factor=3)
    assert entry_in_force(PARAMS, "lora", "squad") == {"rank": 2, "lr_factor": 3}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"per_task": {"squad": {"rank": 0}}}, ".per_task.squad.rank: 0 is not allowed; expected a whole number from"),
        ({"per_task": {"squad": {"ranks": 1}}}, ".per_task.squad.ranks: unknown key; allowed: method,"),
        ({"per_task": {"squad": {"epochs_factor": 1e308}}}, ".per_task.squad.epochs_factor: 1e+308 is not allowed;"),
        ({"per_task": {"own": {"checkpoint": "x"}}}, ".per_task.own.checkpoint: a method has one checkpoint for all"),
        ({"per_task": {"squad": 3}}, ".per_task.squad: 3 is not allowed; expected a mapping"),
        (3, ": 3 is not allowed; expected a mapping"),
    ],
)
def test_errors_in_one_tasks_settings_are_reported_whichever_task_is_read(entry: Any, message: str) -> None:
    with pytest.raises(InputError, match=f"^params.yaml: methods.lora{re.escape(message)}"):
        read_method({"classification": {"own": {}}, "methods": {"lora": entry}}, "lora", "sst2")


@pytest.mark.parametrize(
    ("epochs", "times", "whole"), [(4, 1.5, 6), (3, 1.5, 5), (10, 1.1, 11), (1, 0.25, 1), (4, 1e-7, 1)]
)
def test_a_method_has_its_own_rate_optimizer_and_whole_epochs(epochs: int, times: float, whole: int) -> None:
    muon = OptimizerSettings(kind="muon")
    task = FineTuneSettings(lr=0.001, epochs=epochs, batch_size=8, max_length=32, optimizer=muon)
    settings = adjusted(task, lora.Settings(lr_factor=2, epochs_factor=times, optimizer="adamw"))
    assert (settings.lr, settings.epochs, settings.optimizer.kind) == (0.002, whole, "adamw")
    assert adjusted(task, full.Settings()) == task


def test_an_unknown_method_is_an_input_error() -> None:
    with pytest.raises(InputError, match=r"^params.yaml: methods.wrong.method: 'prefix' is not allowed; expected one"):
        read_method(PARAMS, "wrong")
    with pytest.raises(InputError, match=r"^params.yaml: finetune.methods: 'none' is not allowed; expected one of"):
        read_method(PARAMS, "none")


def test_a_method_that_leaves_nothing_to_train(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(full, "tune", lambda model, head, settings: model.requires_grad_(False))
    with pytest.raises(InputError, match=r"^retrace/methods/full.py: tune leaves no weight to train$"):
        read_method({}, "full").tune(cast(Any, nn.Linear(2, 2)), "classifier")
