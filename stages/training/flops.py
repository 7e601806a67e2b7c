"""Floating-point operations of training, and what share of a device's peak they are.

Model FLOPs utilisation as Chowdhery et al. 2022 (PaLM, appendix B) define it: the operations that the
model's matrix products need, forward and backward, over what the device could do in the same time.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

# Dense bf16 operations a second, from the maker's data sheets, by a part of the device's name.
PEAKS = {"H200": 989e12, "H100": 989e12, "A100": 312e12}


def count_flops(model: nn.Module, loss: Callable[[], Tensor]) -> int:
    """Operations of the matrix products in one forward and backward pass; the run is left as it was.

    An element-wise operation is not counted, a multiplication with its addition counts twice.
    """
    with torch.random.fork_rng(), FlopCounterMode(display=False) as counter:
        loss().backward()
    model.zero_grad(set_to_none=True)
    return counter.get_total_flops()


def peak_flops(device: torch.device) -> float | None:
    """The most bf16 operations a second that the device's maker promises, where it is known."""
    if device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(device)
    return next((peak for part, peak in PEAKS.items() if part in name), None)
