"""The head alone is trained, on a body that stays as it was pretrained."""

from collections.abc import Sequence
from pathlib import Path

from transformers import PreTrainedModel

from retrace.finetuning.settings import MethodSettings
from retrace.finetuning.trained_part import freeze_body, untie_head
from retrace.models.heads import Head, read_model

Settings = MethodSettings


def start(
    head: Head, pretrained: Path, seed: int, attention: str, settings: MethodSettings, classes: Sequence[str] = ()
) -> PreTrainedModel:
    """The pretrained body, frozen, under a new head drawn from `seed`."""
    model = read_model(head, pretrained, seed, attention, classes)
    tune(model, head, seed, settings)
    return model


def tune(model: PreTrainedModel, head: Head, seed: int, settings: MethodSettings) -> None:
    """Freeze the body.

    A language model's head is the pretrained one. Where it shares its weights with the token embeddings, it gets
    a copy of them, so that the body stays as it was.
    """
    if head == "language_model":
        untie_head(model)
    freeze_body(model)
