"""Full fine-tuning: every weight is trained, starting from the pretrained ones."""

from transformers import PreTrainedModel

from retrace.finetuning.settings import MethodSettings
from retrace.models.heads import Head

Settings = MethodSettings


def tune(model: PreTrainedModel, head: Head, settings: MethodSettings) -> None:
    """Change nothing: every weight is trained."""
