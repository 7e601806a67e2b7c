"""Full fine-tuning: every weight is trained, starting from the pretrained ones."""

from collections.abc import Sequence
from pathlib import Path

from transformers import PreTrainedModel

from retrace.finetuning.settings import MethodSettings
from retrace.models.heads import Head, read_model

Settings = MethodSettings


def start(
    head: Head, pretrained: Path, seed: int, attention: str, settings: MethodSettings, classes: Sequence[str] = ()
) -> PreTrainedModel:
    """The pretrained body under a new head drawn from `seed`."""
    return read_model(head, pretrained, seed, attention, classes)


def tune(model: PreTrainedModel, head: Head, seed: int, settings: MethodSettings) -> None:
    """Nothing: every weight is trained."""
