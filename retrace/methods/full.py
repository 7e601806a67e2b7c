"""Full fine-tuning: every weight is trained, starting from the pretrained ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from retrace.finetuning.settings import MethodSettings

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from retrace.models.heads import Head

Settings = MethodSettings


def tune(model: PreTrainedModel, head: Head, settings: MethodSettings) -> None:
    """Change nothing: every weight is trained."""
