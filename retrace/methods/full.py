"""Full fine-tuning: all weights are trained, starting from the pretrained ones."""

from retrace.finetuning.settings import MethodSettings, train_all

Settings = MethodSettings
tune = train_all
