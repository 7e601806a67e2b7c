"""Run a stage in bf16 on a CPU without bf16 instructions, at nearly the speed of float32.

Matrix products of bf16 numbers are computed and summed in float32 and rounded to bf16 once, as AMX and AVX-512 BF16
compute them except for the order of the sums. torch's own kernels take many times as long on such a CPU.

    python benchmarks/emulated_bf16.py -m stages.pretrain
    RETRACE_RUN="python benchmarks/emulated_bf16.py" dvc exp run -S precision=bf16
"""

import runpy
import sys
import warnings
from pathlib import Path
from typing import Any

import torch
from torch.library import Library, get_kernel

PRODUCTS = ("mm", "addmm", "bmm", "baddbmm")


def emulate_bf16() -> Library:
    """Replace torch's matrix products of bf16 tensors on the CPU while the result is kept alive."""
    library = Library("aten", "IMPL", "CPU")
    for name in PRODUCTS:
        product = getattr(torch.ops.aten, name).default
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="(?s).*Overriding a previously registered kernel")
            library.impl(name, _emulated(get_kernel(product, "CPU")), "CPU", allow_override=True)
    return library


def _emulated(kernel: Any) -> Any:
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)

    def product(*operands: Any, **scales: Any) -> torch.Tensor:
        if operands[0].dtype != torch.bfloat16:
            return kernel.call_boxed(keys, *operands, **scales)
        return kernel.call_boxed(keys, *(tensor.float() for tensor in operands), **scales).to(torch.bfloat16)

    return product


if __name__ == "__main__":
    kept = emulate_bf16()
    sys.path[0] = str(Path.cwd())  # as `python -m` has it
    _, module = sys.argv.pop(1), sys.argv.pop(1)  # -m and the stage
    runpy.run_module(module, run_name="__main__", alter_sys=True)
