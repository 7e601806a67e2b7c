"""The head alone is trained, on a body that stays as it was pretrained."""

from pathlib import Path

from transformers import PreTrainedModel

from stages.nets.heads import Head, read_model
from stages.nets.part import MethodSettings, freeze_body

Settings = MethodSettings


def start(head: Head, pretrained: Path, seed: int, attention: str, settings: MethodSettings) -> PreTrainedModel:
    """The pretrained body, frozen, under a new head drawn from `seed`."""
    model = read_model(head, pretrained, seed, attention)
    tune(model, seed, settings)
    return model


def tune(model: PreTrainedModel, seed: int, settings: MethodSettings) -> None:
    """Freeze the body."""
    freeze_body(model)
