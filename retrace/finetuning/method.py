"""A fine-tuning method and the checkpoint it starts from: an entry under `methods` in params.yaml."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from transformers import PreTrainedModel

from retrace.core.errors import InputError
from retrace.core.paths import named_checkpoint
from retrace.core.registry import load_plugin
from retrace.core.settings import build, check_value, section
from retrace.finetuning.trained_part import MethodSettings
from retrace.models.heads import Head, make_model, read_config, read_model

METHODS = "retrace.methods"
TASK_OF = {"classification": "sst2", "qa": "squad"}  # whose settings count for a model with such a head
TASKS = "tasks"  # in an entry under methods: what is otherwise for single tasks, by their names
PRETRAINED = Path("models/pretrained")


@dataclass(frozen=True)
class Method:
    """A fine-tuning method and the checkpoint it starts from."""

    tuning: ModuleType  # of retrace/methods
    settings: MethodSettings

    @property
    def base(self) -> Path:
        """The folder of the model that it starts from."""
        return PRETRAINED if self.settings.model is None else named_checkpoint(self.settings.model)

    @property
    def file(self) -> str:
        """The name of the tuning."""
        return self.tuning.__name__.rpartition(".")[2]

    def tune(self, model: PreTrainedModel, head: Head) -> None:
        """Choose the weights to train and add those of the method."""
        self.tuning.tune(model, head, self.settings)


def start(
    tuning: ModuleType, settings: MethodSettings, head: Head, folder: Path, seed: int, attention: str,
    classes: Sequence[str] = (),
) -> PreTrainedModel:  # fmt: skip
    """The model that a method trains: the checkpoint in `folder`, or random weights, under a head drawn from `seed`."""
    if getattr(tuning, "FROM_RANDOM", False):
        model = make_model(head, read_config(folder), seed, attention, classes)
    else:
        model = read_model(head, folder, seed, attention, classes)
    tuning.tune(model, head, settings)
    return model


def read_method(params: Mapping[str, Any], label: str, task: str | None = None) -> Method:
    """The method as params.yaml sets it, for a task where one is given, or as by default where params.yaml is silent.

    Raises InputError where its settings are wrong or no file of retrace/methods has its name.
    """
    key, entry = f"methods.{label}", params.get("methods", {}).get(label)
    alias = entry.get("tuning") if isinstance(entry, Mapping) else None
    module = load_plugin(METHODS, alias or label, f"{key}.tuning" if alias else "finetune.methods")
    if entry is None:
        return Method(module, module.Settings())
    settings = build(module.Settings, {"methods": {label: _own(entry)}}, key)
    for name in _changes(params, label):
        there = {"methods": {label: {TASKS: {name: entry_in_force(params, label, name)}}}}
        checked = build(module.Settings, there, f"{key}.{TASKS}.{name}")
        settings = checked if name == task else settings
    return Method(module, settings)


def entry_in_force(params: Mapping[str, Any], label: str, task: str) -> dict[str, Any]:
    """What params.yaml says of a method for a task."""
    return _own(section(params, f"methods.{label}")) | _changes(params, label).get(task, {})


def _own(entry: Any) -> Any:
    """An entry under `methods` without what it says of single tasks; what is no section as it is."""
    return {name: value for name, value in entry.items() if name != TASKS} if isinstance(entry, Mapping) else entry


def _changes(params: Mapping[str, Any], label: str) -> dict[str, dict[str, Any]]:
    """What an entry under `methods` says of single tasks."""
    key = f"methods.{label}.{TASKS}"
    if TASKS not in section(params, f"methods.{label}"):
        return {}
    changes = check_value(params, key, dict[str, dict])
    known = ["sst2", "squad", *params.get("classification", {}), *params.get("hub", {}).get("classification", {})]
    for name, changed in changes.items():
        if name not in known:
            raise InputError(f"params.yaml: {key}: {name!r} is not allowed; expected one of {', '.join(known)}")
        for kept in {"tuning", "model"} & changed.keys():
            raise InputError(f"params.yaml: {key}.{name}.{kept}: not allowed; a method has one {kept} for all tasks")
    return changes
