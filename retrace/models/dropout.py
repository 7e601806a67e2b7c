"""Dropout (Srivastava et al. 2014) whose masks are drawn quickly on a CPU.

PyTorch draws a CPU's masks one number after another, on one thread, which for a small model and short sentences took a
third of an update's processor time. Here each element takes 16 random bits.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

LEVELS = 2**16  # of the rate
PER_NUMBER = 4  # elements for each random number of 64 bits


def dropped(states: Tensor, rate: float, training: bool) -> Tensor:
    """`torch.nn.functional.dropout` of states of any shape; on a CPU the rate is rounded to a multiple of 2⁻¹⁶."""
    dropping = round(rate * LEVELS)
    quick = states.device.type == "cpu" and not torch.compiler.is_compiling()
    if not (quick and training and 0 < dropping < LEVELS):
        return functional.dropout(states, rate, training)
    numbers = torch.empty(-(-states.numel() // PER_NUMBER), dtype=torch.int64).random_(-(2**63), None)
    bits = numbers.view(torch.int16)[: states.numel()].view(states.shape)
    kept = torch.ge(bits, dropping - LEVELS // 2, out=torch.empty(states.shape, dtype=states.dtype))  # 1 or 0
    return (states * kept).mul_(LEVELS / (LEVELS - dropping))


class Dropout(nn.Dropout):
    """A dropout layer that draws its masks with `dropped`."""

    def forward(self, input: Tensor) -> Tensor:
        """States of any shape → those with some elements dropped, in training."""
        return dropped(input, self.p, self.training)


def quicken_dropout(model: nn.Module) -> None:
    """Give the dropout layers of a model the class `Dropout`."""
    for module in model.modules():
        if type(module) is nn.Dropout:
            module.__class__ = Dropout
