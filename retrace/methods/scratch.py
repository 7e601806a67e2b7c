"""No pretraining: every weight is trained, starting from random ones. The baseline for `full`."""

from transformers import PreTrainedModel

from retrace.finetuning.settings import MethodSettings
from retrace.models.heads import Head

FROM_RANDOM = True  # of the checkpoint only the architecture is used
Settings = MethodSettings


def tune(model: PreTrainedModel, head: Head, settings: MethodSettings) -> None:
    """Change nothing: every weight is trained."""
