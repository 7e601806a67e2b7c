"""Floating-point operations of training, and the peak of devices.

Model FLOPs utilisation (Chowdhery et al. 2022, PaLM, appendix B) is the operations of the model's matrix products,
forward and backward, over those that the device could do in the same time.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

# Dense bf16 operations per second, from NVIDIA's data sheets, by a part of the device's name.
PEAKS = {"H200": 989e12, "H100": 989e12, "A100": 312e12}


class ProductOperations(TorchDispatchMode):
    """A context that counts the operations of matrix products by torch's formulas.

    A multiplication with its addition counts as two; element-wise operations are not counted. Torch's own
    FlopCounterMode counts by module, for which it keeps tensors alive that would otherwise be freed.
    """

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run and count an operation."""
        result = func(*args, **(kwargs or {}))
        if formula := flop_registry.get(func.overloadpacket):
            self.total += formula(*args, **(kwargs or {}), out_val=result)
        return result


def count_flops(model: nn.Module, loss: Callable[[], Tensor]) -> int:
    """Operations of the matrix products in one forward and backward pass; generators are left unchanged."""
    with torch.random.fork_rng(), ProductOperations() as operations:
        loss().backward()
    model.zero_grad(set_to_none=True)
    return operations.total


def peak_flops(device: torch.device) -> float | None:
    """The device's peak bf16 operations per second; None where it is not known."""
    if device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(device)
    return next((peak for part, peak in PEAKS.items() if part in name), None)
