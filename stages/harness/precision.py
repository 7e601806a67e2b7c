"""The precision of matrix products, as params.yaml names it."""

from typing import Literal

Precision = Literal["auto", "fp32", "bf16"]  # auto: bf16 where the hardware does it well
