"""No pretraining: every weight is trained, starting from random ones. What `full` is compared with."""

from collections.abc import Sequence
from pathlib import Path

from transformers import PreTrainedModel

from retrace.finetuning.settings import MethodSettings
from retrace.models.heads import Head, make_model, read_config

Settings = MethodSettings


def start(
    head: Head, pretrained: Path, seed: int, attention: str, settings: MethodSettings, classes: Sequence[str] = ()
) -> PreTrainedModel:
    """A model of the pretrained one's architecture with weights drawn from `seed`."""
    return make_model(head, read_config(pretrained), seed, attention, classes)


def tune(model: PreTrainedModel, head: Head, seed: int, settings: MethodSettings) -> None:
    """Nothing: every weight is trained."""
