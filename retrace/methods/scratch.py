"""No pretraining: all weights are trained, starting from random ones. The baseline for `full`."""

from retrace.finetuning.settings import MethodSettings, train_all

FROM_RANDOM = True  # only the architecture of the checkpoint is used
Settings = MethodSettings
tune = train_all
