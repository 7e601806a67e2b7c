import re
from pathlib import Path
from typing import Any

import pytest

from retrace.core.errors import InputError
from retrace.finetuning.method import PRETRAINED, read_method
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


def test_a_method_is_the_file_of_its_name_on_what_was_pretrained_here() -> None:
    method = read_method(PARAMS, "full")
    assert (method.tuning, method.file, method.base) == (full, "full", PRETRAINED)
    assert method.settings.lr_factor == 2


def test_a_label_names_its_tuning_and_its_model() -> None:
    method = read_method(PARAMS, "roberta")
    assert (method.tuning, method.file, method.base) == (full, "full", Path("data/checkpoints/roberta-base"))


def test_a_label_has_the_settings_of_its_tuning() -> None:
    method = read_method(PARAMS, "thin")
    assert isinstance(method.settings, lora.Settings)
    assert (method.settings.rank, method.base) == (4, PRETRAINED)


def test_a_method_that_params_yaml_is_silent_about_is_as_by_default() -> None:
    assert read_method({}, "lora").settings == lora.Settings()


def test_a_method_may_be_set_otherwise_for_a_task() -> None:
    chosen = {task: read_method(PARAMS, "lora", task).settings for task in (None, "sst2", "squad")}
    assert chosen[None] == chosen["sst2"] == lora.Settings(rank=8, lr_factor=3)
    assert chosen["squad"] == lora.Settings(rank=2, lr_factor=3)
    assert entry_in_force(PARAMS, "lora", "squad") == {"rank": 2, "lr_factor": 3}


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ({"squad": {"rank": 0}}, "methods.lora.per_task.squad.rank: 0 is not allowed; expected a whole number above 0"),
        ({"squad": {"ranks": 1}}, "methods.lora.per_task.squad.ranks: unknown key; allowed: method,"),
        (
            {"own": {"checkpoint": "x"}},
            "methods.lora.per_task.own.checkpoint: a method has one checkpoint for all tasks",
        ),
        ({"squad": 3}, "methods.lora.per_task.squad: 3 is not allowed; expected a section of keys and values"),
    ],
)
def test_what_is_wrong_for_one_task_is_said_whichever_is_read(tasks: dict[str, Any], message: str) -> None:
    params = {"classification": {"own": {}}, "methods": {"lora": {"per_task": tasks}}}
    with pytest.raises(InputError, match=f"^params.yaml: {re.escape(message)}"):
        read_method(params, "lora", "sst2")


def test_an_entry_that_is_no_section() -> None:
    with pytest.raises(
        InputError, match=r"^params.yaml: methods.lora: 3 is not allowed; expected a section of keys and values"
    ):
        read_method({"methods": {"lora": 3}}, "lora")


def test_a_method_has_a_rate_epochs_and_an_optimiser_of_its_own() -> None:
    task = FineTuneSettings(lr=0.001, epochs=3, batch_size=8, max_length=32, optimizer=OptimizerSettings(kind="muon"))
    settings = adjusted(task, lora.Settings(lr_factor=2, epochs_factor=4, optimizer="adamw"))
    assert (settings.lr, settings.epochs, settings.optimizer.kind) == (0.002, 12, "adamw")
    assert adjusted(task, full.Settings()) == task


@pytest.mark.parametrize(("epochs", "times", "whole"), [(4, 1.5, 6), (3, 1.5, 5), (10, 1.1, 11), (1, 0.25, 1)])
def test_a_method_has_whole_epochs_rounded_up(epochs: int, times: float, whole: int) -> None:
    assert (
        adjusted(
            FineTuneSettings(lr=0.001, epochs=epochs, batch_size=8, max_length=32), full.Settings(epochs_factor=times)
        ).epochs
        == whole
    )


def test_a_tuning_that_there_is_not() -> None:
    with pytest.raises(InputError, match=r"^params.yaml: methods.wrong.method: 'prefix' is not allowed; expected one"):
        read_method(PARAMS, "wrong")
    with pytest.raises(InputError, match=r"^params.yaml: finetune.methods: 'none' is not allowed; expected one of"):
        read_method(PARAMS, "none")
