"""A tuning method by its name, with its settings, for those who have no pretrained model to start from."""

from collections.abc import Callable
from dataclasses import dataclass

from transformers import PreTrainedModel

from stages.harness.plugins import load_plugin
from stages.harness.settings import PARAMS, build, read_params
from stages.nets.heads import Head
from stages.nets.part import MethodSettings

METHODS = "stages.tuning"


@dataclass(frozen=True)
class Method:
    """What a method does to a model."""

    settings: MethodSettings
    tune: Callable[[PreTrainedModel, Head], object]


def read_method(name: str) -> Method:
    """The method, as params.yaml sets it, or as it is by default where params.yaml is absent or silent."""
    module, key = load_plugin(METHODS, name, "finetune.methods"), f"methods.{name}"
    params = read_params() if PARAMS.is_file() else {}
    settings = build(module.Settings, params, key) if name in params.get("methods", {}) else module.Settings()
    return Method(settings, lambda model, head: module.tune(model, head, 0, settings))
