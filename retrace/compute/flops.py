"""Floating-point operations of training, and what share of a device's peak they are.

Model FLOPs utilisation as Chowdhery et al. 2022 (PaLM, appendix B) define it: the operations that the
model's matrix products need, forward and backward, over what the device could do in the same time.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

# Dense bf16 operations a second, from the maker's data sheets, by a part of the device's name.
PEAKS = {"H200": 989e12, "H100": 989e12, "A100": 312e12}


class ProductOperations(TorchDispatchMode):
    """Counts the operations of the matrix products that run while it is entered, by torch's formulas.

    An element-wise operation is not counted, a multiplication with its addition counts twice. Torch's own counter
    tells them by module, for which it keeps tensors alive that would else be freed.
    """

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run the operation, and count it."""
        result = func(*args, **(kwargs or {}))
        if formula := flop_registry.get(func.overloadpacket):
            self.total += formula(*args, **(kwargs or {}), out_val=result)
        return result


def count_flops(model: nn.Module, loss: Callable[[], Tensor]) -> int:
    """Operations of the matrix products in one forward and backward pass; the run is left as it was."""
    with torch.random.fork_rng(), ProductOperations() as operations:
        loss().backward()
    model.zero_grad(set_to_none=True)
    return operations.total


def peak_flops(device: torch.device) -> float | None:
    """The most bf16 operations a second that the device's maker promises, where it is known."""
    if device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(device)
    return next((peak for part, peak in PEAKS.items() if part in name), None)
