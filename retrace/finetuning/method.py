"""A tuning method by its label: an entry under `methods` in params.yaml, and the model that it starts from."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from transformers import PreTrainedModel

from retrace.core.paths import named_checkpoint
from retrace.finetuning.settings import MethodSettings, method_settings
from retrace.models.heads import Head

TASK_OF = {"classification": "sst2", "qa": "squad"}  # whose settings count for a model with such a head
PRETRAINED = Path("models/pretrained")


@dataclass(frozen=True)
class Method:
    """What is done to which model."""

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
        """Change a model as the method does before training."""
        self.tuning.tune(model, head, 0, self.settings)


def read_method(params: Mapping[str, Any], label: str, task: str | None = None) -> Method:
    """The method as params.yaml sets it, for a task where one is given, or as by default where params.yaml is silent.

    Raises InputError where its settings are wrong or no file of retrace/methods has its name.
    """
    return Method(*method_settings(params, label, task))
