"""The device that a stage runs on: threads, seeds, precision, the process group, and the message when memory runs out.

Accelerate finds the processes and their devices. Everything else is set here, so that the same params on the same
machine give the same numbers.
"""

import ctypes
import os
import re
import resource
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from itertools import islice
from typing import Any, Protocol, TypeVar

import torch
from accelerate import Accelerator
from accelerate.utils import DistributedDataParallelKwargs, parse_flag_from_env, set_seed
from torch import Tensor
from torch.distributed.constants import default_pg_timeout

from retrace.compute.lease import lease_gpus
from retrace.compute.tensors import seeded
from retrace.core.environment import cores, is_true, whole_number
from retrace.core.errors import STOPPING, InputError, Interrupted
from retrace.core.files import size
from retrace.core.guard import handled
from retrace.core.settings import LARGEST_SEED, Precision, read_params

Batch = TypeVar("Batch", bound="Examples")

TIMEOUT = timedelta(seconds=45)  # while waiting for another process in an update
GONE = ("closed by peer", "reset by peer", "imed out")  # in gloo's messages about a process that ended or hangs

CPU_OUT_OF_MEMORY = "DefaultCPUAllocator: can't allocate memory"  # in the RuntimeError that torch raises
# In the RuntimeErrors of kernels, cuBLAS and NCCL, which allocate memory of their own.
GPU_OUT_OF_MEMORY = ("CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED", "Cuda failure 2 'out of memory'")

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h


class Examples(Protocol):
    """A batch that can be split."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: slice, /) -> Any: ...


@dataclass(frozen=True)
class Device:
    """Where tensors live, and in which precision matrices are multiplied."""

    accelerator: Accelerator
    torch_device: torch.device  # of this process
    rank: int  # the number of this process, from 0
    processes: int  # how many share the work
    bf16: bool
    sharded: bool  # whether each process holds a shard of the weights rather than all of them
    micro_batch: int | None = None  # the most examples in a forward pass in training
    recomputes: bool = False  # whether the backward pass recomputes activations within layers (checkpointing)
    compiler: str | None = None  # torch.compile's backend in training; None: the model is not compiled

    @property
    def is_main(self) -> bool:
        """Whether this process writes the files."""
        return self.rank == 0

    @property
    def attention(self) -> str:
        """The fastest attention here, by its name in transformers."""
        return attention_of(self.torch_device)

    def send(self, tensor: Tensor) -> Tensor:
        """A CPU tensor on the device; it is copied from pinned memory, so that the host does not wait for a GPU."""
        pinned = tensor.contiguous().pin_memory() if self.torch_device.type == "cuda" else tensor
        return pinned.to(self.torch_device, non_blocking=True)

    def is_idle(self) -> bool:
        """Whether the device has finished all work given to it, as a CPU always has."""
        return self.torch_device.type != "cuda" or torch.cuda.current_stream().query()

    def share(self, count: int) -> list[tuple[slice, bool]]:
        """This process's share of a batch of `count` examples: rows for each forward pass, and whether they count.

        Every process makes the same number of passes, since all take part in a sharded model's: if no example is left
        for a pass, the first one is used and does not count.
        """
        most = -(-count // self.processes)  # examples per process
        passes = -(-most // self.micro_batch) if self.micro_batch else 1
        parts = passes * self.processes
        firsts = range(self.rank, parts, self.processes)
        return [(slice(first, None, parts), True) if first < count else (slice(1), False) for first in firsts]

    def share_batches(self, batches: Iterable[Batch]) -> Iterator[tuple[Batch, bool]]:
        """This process's batches in evaluation, each with whether it counts.

        Every process gets the same number, since all take part in a sharded model's forward pass: a process without a
        batch in the last round gets the round's first one, which does not count. Batches are split to at most twice
        the examples of a pass in training, as nothing is kept for a backward pass.
        """
        most = 2 * self.micro_batch if self.micro_batch else sys.maxsize
        split = (batch[first : first + most] for batch in batches for first in range(0, len(batch), most))
        while one_round := list(islice(split, self.processes)):
            counts = self.rank < len(one_round)
            yield one_round[self.rank if counts else 0], counts

    def all_reduce_sum(self, values: Sequence[float]) -> list[float]:
        """The sums of `values` over all processes."""
        return self.all_reduce(torch.tensor(values, dtype=torch.float64, device=self.torch_device)).tolist()

    def all_reduce(self, values: Tensor) -> Tensor:
        """The sum of a tensor over all processes, in place."""
        if self.processes > 1:
            torch.distributed.all_reduce(values)
        return values

    @contextmanager
    def together(self) -> Iterator[None]:
        """Raise Interrupted if another process ended, or did not answer within the process group's timeout."""
        try:
            yield
        except RuntimeError as error:
            if self.processes == 1 or not any(message in str(error) for message in GONE):
                raise
            raise Interrupted(
                f"process {self.rank} lost contact with another, which has ended or hangs; run it again to resume"
            ) from error

    @contextmanager
    def short_timeout(self) -> Iterator[None]:
        """A timeout of `TIMEOUT` for an update on CPUs, in which all processes have about as much to do.

        Evaluations keep the default, as one process may take longer there, or save files alone. Compiled models keep
        it too, and GPUs have NCCL's ten minutes, as both may start slowly.
        """
        is_short = self.processes > 1 and self.torch_device.type == "cpu" and not self.compiler
        group = torch.distributed.group.WORLD if is_short else None
        if group is not None:
            group.set_timeout(TIMEOUT)
        try:
            yield
        finally:
            if group is not None:
                group.set_timeout(default_pg_timeout)

    def seed_dropout(self) -> None:
        """Give each process its own dropout masks after the weights are drawn; the main process's stay the same."""
        if self.rank:
            torch.manual_seed(seeded(torch.initial_seed(), f"dropout of process {self.rank}").initial_seed())

    def autocast(self) -> torch.autocast:
        """Mixed precision in bf16, if it is on."""
        return torch.autocast(self.torch_device.type, torch.bfloat16, enabled=self.bf16)


def open_device(seed: int, precision: Precision = "auto", lease: bool = True) -> Device:
    """Join the process group; set threads, seeds and deterministic kernels.

    With `lease`, it first waits for a GPU that no other process has, if there are any. Raises InputError for a seed
    that some generator does not accept.
    """
    if not 0 <= seed <= LARGEST_SEED:
        raise InputError(f"seed: {seed} is not allowed; expected a whole number from 0 to {LARGEST_SEED}")
    _use_deterministic_kernels()
    _keep_freed_memory()
    sharded = is_sharded()
    if sharded:  # by retrace.compute.sharding; this keeps Accelerate and transformers from sharding too
        os.environ.update(FSDP_VERSION="2", FSDP_CPU_RAM_EFFICIENT_LOADING="false")
    if lease and torch.version.cuda and not parse_flag_from_env("ACCELERATE_USE_CPU"):
        lease_gpus()  # before CUDA starts, and so before the process group is made
    restarts = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
    if restarts:  # by --max_restarts; the launcher's own store has the addresses of the ended processes
        port = str(int(os.environ["MASTER_PORT"]) + restarts)
        os.environ.update(MASTER_PORT=port, TORCHELASTIC_USE_AGENT_STORE="False")
    accelerator = _join()
    torch.set_float32_matmul_precision("highest")  # NVIDIA's containers ask for TF32 (TORCH_ALLOW_TF32_CUBLAS_OVERRIDE)
    torch.set_num_threads(threads(int(os.environ.get("LOCAL_WORLD_SIZE") or accelerator.num_processes)))
    set_seed(seed)
    bf16 = uses_bf16(precision, accelerator.device)
    sharded = sharded and torch.distributed.is_initialized()
    compiler = "inductor" if is_true("RETRACE_COMPILE") else None
    if compiler and sharded:
        raise InputError("RETRACE_COMPILE: true is not allowed with sharded weights (FSDP)")
    micro_batch, recomputes = whole_number("RETRACE_MICRO_BATCH"), is_true("RETRACE_ACTIVATION_CHECKPOINTING")
    processes = accelerator.process_index, accelerator.num_processes
    return Device(accelerator, accelerator.device, *processes, bf16, sharded, micro_batch, recomputes, compiler)


def _join() -> Accelerator:
    """Join the process group; a process that waits for the others ends at once when a signal asks it to stop.

    PyTorch waits without running Python's handlers, so the launcher would have to kill it in the end.
    """
    waits = os.environ.get("WORLD_SIZE", "1") != "1"
    with handled(signal.SIG_DFL, STOPPING if waits else ()):
        # Explicit, as a launcher's config file may set others, which would differ from the precision that is recorded.
        # Gradients are views of the buffers that are averaged, which saves a copy of all of them.
        buckets = DistributedDataParallelKwargs(gradient_as_bucket_view=True)
        return Accelerator(mixed_precision="no", dynamo_backend="no", kwargs_handlers=[buckets])


def _use_deterministic_kernels() -> None:
    """Sum in the same order in every run; called before CUDA starts and the process group is made."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without it CUDA's products are not deterministic
    # NVLS sums in the network switch, in any order. NCCL and PyTorch read both when the process group is made.
    os.environ.setdefault("NCCL_ALGO", "^NVLS,NVLSTree")
    torch.use_deterministic_algorithms(True)
    torch.backends.cuda.enable_cudnn_sdp(False)  # its backward pass is not deterministic; the other kernels' are
    # Deterministic mode also fills new memory, in case something reads it before it is written.
    torch.utils.deterministic.fill_uninitialized_memory = False  # pyright: ignore[reportAttributeAccessIssue]


def peak_memory() -> int:
    """The peak memory of this process so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _keep_freed_memory() -> None:
    """Make glibc reuse freed memory instead of returning it to the system.

    Otherwise the system clears the pages again in every update, which takes a quarter of a small model's training time
    on a CPU. Other C libraries have no such setting.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        # Older glibc refuses more than 32 MiB; left unset beside the other, the threshold would stay at 128 KiB.
        if not mallopt(_MMAP_THRESHOLD, 2**30):
            mallopt(_MMAP_THRESHOLD, 2**25)
        mallopt(_TRIM_THRESHOLD, 2**31 - 1)


def threads(processes: int) -> int:
    """CPU threads for each of this machine's processes: `RETRACE_THREADS`, else its share of the cores.

    Accelerate sets OMP_NUM_THREADS to 1 for its children, which would leave cores idle.
    """
    return whole_number("RETRACE_THREADS") or max(1, cores() // processes)


def is_sharded() -> bool:
    """Whether Accelerate's launcher asks for sharded weights (FSDP)."""
    return parse_flag_from_env("ACCELERATE_USE_FSDP")


def attention_of(device: torch.device) -> str:
    """The fastest attention on a device, by its name in transformers."""
    return "sdpa" if device.type == "cuda" else "lean"


def uses_bf16(precision: Precision, device: torch.device) -> bool:
    """Whether matrices are multiplied in bf16: as set, or for `auto` where the hardware is fast at it."""
    if precision != "auto":
        return precision == "bf16"
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return any(map(torch.cpu.get_capabilities().get, ("avx512_bf16", "amx_tile")))


@contextmanager
def named_out_of_memory(run: str, trains: bool = True) -> Iterator[None]:
    """Raise InputError if a GPU or the machine runs out of memory.

    For training, the message says how much was planned for `run`, and how to use less.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        shortage = _shortage(error)
        if not shortage:
            raise
        if not trains:
            raise InputError(f"{run}: {shortage}") from None
        # Imported by name so that no stage depends on estimates, which change no result.
        needed = import_module("retrace.estimates.needs").planned_memory(read_params(), run)
        planned = f"planned: {size(needed)}, and what the program takes on top; " if needed else ""
        most = os.environ.get("RETRACE_MICRO_BATCH")
        fewer = f"RETRACE_MICRO_BATCH=N{f' (now {most})' if most else ''}, N examples per forward pass,"
        less = f"to use less, set {fewer} or RETRACE_ACTIVATION_CHECKPOINTING=true"
        raise InputError(f"{run}: {shortage}; {planned}{less}") from None


def _shortage(error: MemoryError | RuntimeError) -> str | None:
    """An allocator's message when memory runs out, without its advice; None for any other error."""
    said = str(error)
    for message in GPU_OUT_OF_MEMORY:
        if message in said:
            return message
    if CPU_OUT_OF_MEMORY in said:
        asked = re.search(r"allocate (\d+) bytes", said)
        return "out of memory" + (f"; {size(int(asked[1]))} could not be allocated" if asked else "")
    if isinstance(error, torch.OutOfMemoryError):
        return ". ".join(said.split(". ")[:3])
    return said or "out of memory" if isinstance(error, MemoryError) else None
