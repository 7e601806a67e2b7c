"""Full fine-tuning: every weight is trained, starting from the pretrained ones."""

from pathlib import Path

from transformers import PreTrainedModel

from stages.nets.heads import Head, read_model
from stages.nets.part import MethodSettings

Settings = MethodSettings


def start(head: Head, pretrained: Path, seed: int, attention: str, settings: MethodSettings) -> PreTrainedModel:
    """The pretrained body under a new head drawn from `seed`."""
    return read_model(head, pretrained, seed, attention)


def tune(model: PreTrainedModel, seed: int, settings: MethodSettings) -> None:
    """Nothing: every weight is trained."""
