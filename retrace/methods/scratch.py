"""No pretraining: every weight is trained, starting from random ones. The baseline for `full`."""

from retrace.finetuning.settings import MethodSettings

FROM_RANDOM = True  # of the checkpoint only the architecture is used
Settings = MethodSettings
