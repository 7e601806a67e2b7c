"""No pretraining: every weight is trained, starting from random ones. The baseline for `full`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from retrace.finetuning.settings import MethodSettings

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from retrace.models.heads import Head

FROM_RANDOM = True  # of the checkpoint only the architecture is used
Settings = MethodSettings


def tune(model: PreTrainedModel, head: Head, settings: MethodSettings) -> None:
    """Change nothing: every weight is trained."""
