"""Full fine-tuning: every weight is trained, starting from the pretrained ones."""

from retrace.finetuning.settings import MethodSettings

Settings = MethodSettings
