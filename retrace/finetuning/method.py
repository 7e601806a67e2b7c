"""A fine-tuning method and the checkpoint it starts from: an entry under `methods` in params.yaml."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from transformers import PreTrainedModel

from retrace.core.paths import named_checkpoint
from retrace.finetuning.settings import MethodSettings, method_settings
from retrace.models.heads import Head, make_model, read_config, read_model

TASK_OF = {"classification": "sst2", "qa": "squad"}  # whose settings count for a model with such a head
PRETRAINED = Path("models/pretrained")


@dataclass(frozen=True)
class Method:
    """A fine-tuning method and the checkpoint it starts from."""

    tuning: ModuleType  # of retrace/methods
    settings: MethodSettings

    @property
    def base(self) -> Path:
        """The folder of the model that it starts from."""
        return PRETRAINED if self.settings.checkpoint is None else named_checkpoint(self.settings.checkpoint)

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
    return Method(*method_settings(params, label, task))
