"""Settings of fine-tuning: those of a task and those of a method."""

from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from retrace.core.errors import InputError
from retrace.core.settings import (
    Count,
    Dropout,
    Params,
    Positive,
    Precision,
    Section,
    build,
    load_plugin,
    plugin_names,
    require,
)
from retrace.training.settings import OptimizerSettings

METHODS = "retrace.methods"
INPUT_LENGTHS = ("max_length", "train_length")  # settings of a task that limit its inputs
PER_TASK = "per_task"  # in an entry under methods: other values for single tasks, by name


class FineTuneSettings(Section):
    """Fine-tuning on labelled examples, in batches of similar length."""

    lr: Positive = Field(description="peak learning rate")
    epochs: Count = Field(description="number of epochs")
    batch_size: Count = Field(description="examples per step, over all processes")
    max_length: int = Field(ge=3, description="most tokens of an input; longer texts are truncated")
    max_train_examples: Count | None = Field(
        default=None, description="train on this many examples, drawn with the seed; null: on all"
    )
    dropout: Dropout | None = Field(
        default=None,
        description="dropout rate; null: as in pretraining; applies to attention weights in BERT and RoBERTa only, and "
        "to attention's output in ModernBERT only if it was pretrained with dropout",
    )
    rdrop: float = Field(
        default=0.0,
        ge=0,
        le=100,
        description="weight of R-Drop, which adds to the loss the divergence of two predictions under different "
        "dropout; needs the task's own dropout above 0 and, for questions, extractive answers; doubles time and "
        "memory; 0: off",
    )
    checkpoint: Literal["best", "last"] = Field(
        default="best", description="which epoch to keep: the one with the lowest validation loss, or the last"
    )
    optimizer: OptimizerSettings = Field(
        default=OptimizerSettings(), description="the optimizer, with the keys of pretrain.optimizer"
    )

    @property
    def copies(self) -> int:
        """How many copies of each example are in a forward pass: two with R-Drop."""
        return 2 if self.rdrop else 1

    @model_validator(mode="after")
    def _drops_for_rdrop(self) -> Self:
        require(not self.rdrop or bool(self.dropout), "rdrop", self.rdrop, "it needs the task's own dropout above 0")
        return self


class MethodSettings(Section):
    """The settings that all methods have; some methods have more."""

    method: str | None = Field(default=None, description="a file of retrace/methods; null: the entry's name")
    checkpoint: str | None = Field(
        default=None,
        description="an entry under checkpoints in data/params.yaml to start from; null: the model pretrained here",
    )
    lr_factor: Positive = Field(default=1.0, description="multiplies the task's peak learning rate")
    epochs_factor: float = Field(default=1.0, gt=0, le=1000, description="multiplies the task's epochs, rounded up")
    optimizer: Literal["muon", "adamw"] | None = Field(default=None, description="kind of optimizer; null: the task's")


class FineTuneParams(Params):
    """What stages/finetune_sst2.py reads."""

    precision: Precision
    task: FineTuneSettings = Field(alias="${item.task}")
    entry: dict[str, Any] = Field(alias="methods.${item.method}")


def load_method(name: str, key: str, place: Path | None = None) -> ModuleType:
    """Import a file of retrace/methods.

    Raises InputError. If there is no such method, it names the `key` of the settings, or of the file `place`; if the
    method's file does not define what a method needs, it names that file.
    """
    return load_plugin(METHODS, name, ("Settings", "tune"), key, place)


def train_all(*_: object) -> None:
    """Leave every weight trainable: the `tune` of methods that freeze nothing and add nothing."""


def method_settings(
    params: Mapping[str, Any], label: str, task: str | None = None
) -> tuple[ModuleType, MethodSettings]:
    """The module of a method and its settings for a task; None for a task without an entry under `per_task`.

    `label` is the method's name under `methods`; a file of retrace/methods without an entry has its defaults. Raises
    InputError if a setting is wrong or no file has that name.
    """
    key, entry = f"methods.{label}", method_entries(params).get(label)
    if entry is None:
        module = load_method(label, "finetune.methods")
        return module, module.Settings()
    entry = build(dict[str, Any], params, key)
    module = load_method(entry.get("method") or label, f"{key}.method" if entry.get("method") else "methods")
    if entry.get("method") not in (None, label) and label in plugin_names(METHODS):  # whose file the stage depends on
        raise InputError(f"params.yaml: {key}.method: {entry['method']!r} is not allowed; {label} is a method itself")
    settings = build(module.Settings, {"methods": {label: _without_tasks(entry)}}, key)
    changes = build(dict[str, dict[str, Any]], params, f"{key}.{PER_TASK}") if PER_TASK in entry else {}
    for name, changed in changes.items():
        for fixed in ("checkpoint", "method"):
            if fixed in changed:
                said = f"a method has one {fixed} for all tasks"
                raise InputError(f"params.yaml: {key}.{PER_TASK}.{name}.{fixed}: {said}")
        there = {"methods": {label: {PER_TASK: {name: entry_in_force(params, label, name)}}}}
        checked = build(module.Settings, there, f"{key}.{PER_TASK}.{name}")
        settings = checked if name == task else settings
    return module, settings


def method_entries(params: Mapping[str, Any]) -> dict[str, Any]:
    """The entries under `methods`, none without that key; raises InputError if it is not a mapping."""
    return build(dict[str, Any], params, "methods") if "methods" in params else {}


def entry_in_force(params: Mapping[str, Any], label: str, task: str) -> dict[str, Any]:
    """The entry of a method in params.yaml, with the task's values under `per_task` merged in."""
    entry = params["methods"][label]
    return _without_tasks(entry) | entry.get(PER_TASK, {}).get(task, {})


def _without_tasks(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name != PER_TASK}


def check_room(key: str, given: int, least: int, holds: str) -> None:
    """Raise InputError if the length under a key is below `least`; `holds` says what has to fit into it."""
    if given < least:
        raise InputError(f"params.yaml: {key}: {given} is not allowed; expected at least {least}, to fit {holds}")
