"""Settings of what pretraining predicts."""

from typing import Literal

SHORTEST_PAIR = 16  # tokens; a block or a document that is shorter holds no two sentences


MaskReplacement = Literal["mask", "80-10-10"]
