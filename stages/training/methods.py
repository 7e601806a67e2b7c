"""A tuning method by its label: an entry under `methods` in params.yaml, and the model that it starts from."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from transformers import PreTrainedModel

from stages.corpus.checkpoint import named_checkpoint
from stages.harness.plugins import load_plugin
from stages.harness.settings import build
from stages.nets.heads import Head
from stages.nets.part import MethodSettings

METHODS = "stages.tuning"
PRETRAINED = Path("models/pretrained")


@dataclass(frozen=True)
class Method:
    """What is done to which model."""

    tuning: ModuleType  # of stages/tuning
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
        """Change a model as the method does before training."""
        self.tuning.tune(model, head, 0, self.settings)


def read_method(params: Mapping[str, Any], label: str) -> Method:
    """The method as params.yaml sets it, or as it is by default where params.yaml is silent.

    Raises InputError where its settings are wrong or no file of stages/tuning has its name.
    """
    entry = params.get("methods", {}).get(label)
    alias = entry.get("tuning") if isinstance(entry, Mapping) else None
    module = load_plugin(METHODS, alias or label, f"methods.{label}.tuning" if alias else "finetune.methods")
    return Method(
        module, build(module.Settings, params, f"methods.{label}") if entry is not None else module.Settings()
    )
