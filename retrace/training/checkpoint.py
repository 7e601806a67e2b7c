"""Checkpoints of a training run: a run that was killed resumes from the last one and ends with the same bytes.

A checkpoint is a folder that is written atomically. One safetensors file has the trained weights, the optimizers'
moments, with `checkpoint: best` the kept epoch's weights, and the states of the random generators; sharded tensors are
gathered first. A json file has the rest, and a third file the checksums. Frozen weights are not saved. Training goes on
during the writing.

The last two are kept, and a damaged one is detected and skipped. Checkpoints are not tracked by DVC. Their folder is
named by a digest of everything that the result depends on, so they are never used with other settings or code. On
other hardware, or with another number of processes, they are used if RETRACE_RESUME_ANYWHERE is true: batches come in
the same order, but sums round differently. A folder belongs to one run at a time.
"""

import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TextIO

import torch
import torch.cuda.nccl
from accelerate.utils import broadcast_object_list, gather_object
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.optim import Optimizer

from retrace.compute.device import Device
from retrace.compute.sharding import full_tensor, gather_weights, load_weights, local_shard
from retrace.core.environment import is_true
from retrace.core.errors import InputError
from retrace.core.files import SUMS, atomic_folder, damaged, file_digests, read_json, size, write_text
from retrace.core.guard import take
from retrace.core.paths import STATES
from retrace.core.records import installed

STATE, PROGRESS = "state.safetensors", "progress.json"
SAVED = 2  # checkpoints kept
PLACES = 64  # processes that may do the same run at once, each with checkpoints of its own
LIMITS = ("ONEDNN_MAX_CPU_ISA", "MKL_CBWR")  # variables that limit a CPU's instructions, so sums round differently
RECENT = 20  # updates over which the loss is averaged to detect divergence
SECONDS = 120.0  # between two checkpoints, unless RETRACE_SAVE_SECONDS is set


@dataclass
class Position:
    """The position of a run between two updates, and its running sums."""

    step: int = 0  # updates done
    epoch: int = -1  # last evaluated epoch; 0 is the model before training
    summed: float = 0.0  # loss of the current epoch so far, nats
    targets: int = 0  # number of targets of that sum
    recent: list[float] = field(default_factory=list)  # loss per target of the last updates, oldest first
    lowest: float | None = None  # lowest mean over that many updates so far
    tokens: int = 0  # of the whole run, without padding
    seconds: float = 0.0  # in updates and checkpoints, without evaluation and waiting for data
    waited: float = 0.0  # seconds of waiting for data
    evaluating: float = 0.0  # seconds of evaluation
    points: list[list[float]] = field(default_factory=list)  # learning curve: updates done, mean loss since the last
    since: float = 0.0  # loss since the last point, nats
    targets_since: int = 0  # number of targets of that sum

    def add(self, loss: float, targets: int, tokens: int, seconds: float) -> None:
        """Count an update."""
        self.step, self.tokens, self.seconds = self.step + 1, self.tokens + tokens, self.seconds + seconds
        self.summed, self.targets = self.summed + loss, self.targets + targets
        self.since, self.targets_since = self.since + loss, self.targets_since + targets
        self.recent = [*self.recent, loss / targets][-RECENT:]
        if len(self.recent) == RECENT:
            self.lowest = self.level if self.lowest is None else min(self.lowest, self.level)

    @property
    def level(self) -> float:
        """The mean loss per target of the last updates, nats."""
        return sum(self.recent) / len(self.recent)

    def mark(self) -> None:
        """Add a point to the curve by update."""
        self.points.append([self.step, self.since / self.targets_since])
        self.since, self.targets_since = 0.0, 0

    def begin_after(self, epoch: int) -> None:
        """Start the epoch after this one."""
        self.epoch, self.summed, self.targets = epoch, 0.0, 0


class Checkpointer:
    """Saves and restores the checkpoints of one run."""

    def __init__(self, name: str, digest: str, device: Device) -> None:
        """`digest` covers everything that the result depends on, except the device."""
        self._device, self._every, self._last = device, _seconds(), time.monotonic()
        self._hardware = _hardware(device)
        states = Path(os.environ.get("DVC_ROOT") or ".") / STATES
        self._same_run = f"{name}-{_mark(digest)}"  # on any hardware
        self._folder = states / f"{self._same_run}.{_mark(self._hardware)}"
        self._locks: dict[Path, TextIO] = {}  # by folder; held by the main process for all
        self._elsewhere: Path | None = None  # a folder of checkpoints from other hardware, to resume from
        if device.is_main:
            self._folder = self._free_place()
            if is_true("RETRACE_RESUME_ANYWHERE"):
                own = max((path.name for path in _checkpoints(self._folder)), default="")
                ahead = (path.parent for path in self._others() if path.name > own)
                self._elsewhere = next(filter(self._take, ahead), None)
        self._folder, self._elsewhere = broadcast_object_list([self._folder, self._elsewhere])
        self._writer = ThreadPoolExecutor(1)
        self._writing: Future[None] | None = None

    def space(self, optimizers: list[Optimizer]) -> str:
        """A message about the disk space that checkpoints and the trained weights take, and the free space.

        Raises InputError if the weights alone do not fit.
        """
        trained = copies = 0
        for group in (group for optimizer in optimizers for group in optimizer.param_groups):
            weights = sum(weight.nbytes for weight in group["params"])
            trained += weights
            copies += weights * (2 + (2 if "betas" in group else 1))  # current and kept weights, moments
        free = shutil.disk_usage(".").free
        if trained > free:
            raise InputError(f"the trained weights take {size(trained)} of disk space; {size(free)} is free")
        return f"takes up to {size(trained + (SAVED + 1) * copies)} of disk space; {size(free)} is free"

    def due(self) -> bool:
        """Whether it is time for a checkpoint and the last one is written; only the main process decides."""
        is_writing = self._every > 0 and self._writing is not None and not self._writing.done()
        return self._device.is_main and not is_writing and time.monotonic() - self._last >= self._every

    def save(
        self, model: nn.Module, optimizers: list[Optimizer], at: Position, journal: list[Any], kept: dict[str, Tensor]
    ) -> None:
        """Copy the state and write it while training goes on; every process must call it.

        Raises what writing the previous checkpoint raised, such as OSError on a full disk.
        """
        tensors = {f"model/{name}": weight for name, weight in gather_weights(model, only_trained=True).items()}
        tensors |= _optimizer_tensors(optimizers, self._device)
        for states in gather_object([_generators(self._device)]):
            tensors |= states
        if self._device.is_main:
            self.wait()
            copies = {name: tensor.detach().to("cpu", copy=True).contiguous() for name, tensor in tensors.items()}
            copies |= {f"kept/{name}": tensor for name, tensor in kept.items()}  # never changed in place, so not copied
            progress = json.dumps({"position": asdict(at), "journal": journal, "hardware": self._hardware})
            self._writing = self._writer.submit(self._write, at.step, copies, progress)
        self._last = time.monotonic()

    def wait(self) -> None:
        """Wait until the last checkpoint is on disk; raises what writing it raised."""
        if self._writing is not None:
            self._writing.result()

    def restore(
        self, model: nn.Module, optimizers: list[Optimizer], journal: list[Any], kept: dict[str, Tensor]
    ) -> tuple[Position, list[str]]:
        """Load the newest undamaged checkpoint; returns its position, and messages to the user."""
        messages = []
        found = [path for folder in (self._folder, self._elsewhere) if folder for path in _checkpoints(folder)]
        for path in sorted(found, key=lambda path: path.name, reverse=True):
            wrong = find_damage(path)
            if wrong:
                messages.append(f"the checkpoint of step {int(path.name)} is damaged: {wrong.name}")
                continue
            self._require_agreement(int(path.name))
            with safe_open(path / STATE, framework="pt") as file:
                reads = self._device.is_main or not self._device.sharded  # with sharding the main process loads for all
                load_weights(model, dict(_tensors(file, "model")) if reads else {})
                for number, optimizer in enumerate(optimizers):
                    _load_optimizer(optimizer, _tensors(file, f"optimizer/{number}"))
                kept.update(_tensors(file, "kept") if reads else ())
                _set_generators(dict(_tensors(file, f"generator/{self._device.rank}")), self._device)
            progress = read_json(path / PROGRESS)
            journal[:] = progress["journal"]
            at = Position(**progress["position"])
            is_own = progress["hardware"] == self._hardware
            other = "" if is_own else f", saved on {progress['hardware']}; this is {self._hardware}"
            return at, [*messages, f"resuming after step {at.step}{other}"]
        self._require_agreement(0)
        return Position(), messages + (["starting over"] if messages else []) + self._not_used()

    def _require_agreement(self, step: int) -> None:
        """Raise InputError unless all processes resume after the same step; every process must call it.

        A process that does not see a checkpoint, on a machine without the shared folder or with an old listing of it,
        would go on with weights of its own, and gradients would be averaged over different models.
        """
        steps = gather_object([step])
        if len(set(steps)) > 1:
            seen = ", ".join(map(str, steps))
            said = f"the processes see checkpoints of different steps ({seen})"
            raise InputError(f"{self._folder}: {said}; expected a folder that all machines share")

    def remove(self) -> None:
        """Remove all checkpoints, once the outputs of the run are written."""
        with self._device.together():
            self._device.accelerator.wait_for_everyone()
            self._writer.shutdown()
            if self._device.is_main:
                done = [self._folder, *(path.parent for path in self._others() if self._elsewhere)]
                for folder in filter(self._take, done):
                    shutil.rmtree(folder, ignore_errors=True)
                    _lock_of(folder).unlink(missing_ok=True)
                self.close()
            self._device.accelerator.wait_for_everyone()

    def close(self) -> None:
        """Release the checkpoints to other runs, as the end of this process does."""
        self._writer.shutdown()
        for lock in self._locks.values():
            lock.close()

    def _write(self, step: int, tensors: dict[str, Tensor], progress: str) -> None:
        """Write a checkpoint and remove all but the last two."""
        for left in self._folder.glob(".*.partial"):  # of a writer that was killed, at another update
            shutil.rmtree(left, ignore_errors=True)
        with atomic_folder(self._folder / f"{step:09d}", summed=True) as folder:
            save_file(tensors, folder / STATE)
            write_text(folder / PROGRESS, progress)
        found = _checkpoints(self._folder)
        last = [path for path in found if int(path.name) <= step][-SAVED:]
        for path in set(found).difference(last):  # older ones, and damaged ones of later updates
            shutil.rmtree(path, ignore_errors=True)

    def _free_place(self) -> Path:
        """Lock a folder that no other run uses, preferably one with checkpoints.

        Workers of `dvc exp run --queue` share the folder of checkpoints, and two may do the same run.
        """
        first = self._folder
        numbered = [first, *(first.with_name(f"{first.name}-{number}") for number in range(2, PLACES + 1))]
        for place in sorted(numbered, key=lambda place: not any(place.glob("[0-9]*"))):
            if self._take(place):
                return place
        raise InputError(f"{first}: {PLACES} processes are already doing this run")

    def _others(self) -> list[Path]:
        """The newest checkpoint in each folder of the same run on other hardware, the most advanced first."""
        own = f"{self._same_run}.{_mark(self._hardware)}"
        folders = sorted(self._folder.parent.glob(f"{self._same_run}.*/"))
        newest = [path for folder in folders if not folder.name.startswith(own) for path in _checkpoints(folder)[-1:]]
        return sorted(newest, key=lambda path: path.name, reverse=True)

    def _take(self, folder: Path) -> bool:
        """Lock a folder of checkpoints, unless this run holds its lock; False if another run does."""
        if folder not in self._locks:
            lock = take(_lock_of(folder))
            if lock is None:
                return False
            self._locks[folder] = lock
        return True

    def _not_used(self) -> list[str]:
        """A message about a checkpoint of the same run on other hardware, where the bytes would differ."""
        for path in self._others():
            if find_damage(path) is None:
                where = f"saved on {read_json(path / PROGRESS)['hardware']}; this is {self._hardware}"
                anyway = "(RETRACE_RESUME_ANYWHERE=true resumes anyway)"
                return [f"not resuming after step {int(path.name)}: {where} {anyway}"]
        return []


def _tensors(file: Any, prefix: str) -> Iterator[tuple[str, Tensor]]:
    """The tensors of a file whose names have a prefix, read one at a time, with the rest of their names."""
    for name in file.keys():  # noqa: SIM118 - not a dict
        if name.startswith(f"{prefix}/"):
            yield name.removeprefix(f"{prefix}/"), file.get_tensor(name)


def _checkpoints(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*") if path.name.isdigit())


def _mark(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _hardware(device: Device) -> str:
    """What the bytes of a run depend on besides settings, code and inputs."""
    where = f"CPU with {torch.backends.cpu.get_cpu_capability()}"
    if device.torch_device.type == "cuda":
        nccl = ".".join(map(str, torch.cuda.nccl.version()))
        where = f"{torch.cuda.get_device_name(device.torch_device)}, CUDA {torch.version.cuda}, NCCL {nccl}"
    threads = f" × {torch.get_num_threads()} threads" if device.torch_device.type == "cpu" else ""
    processes = f"{device.processes}{' sharded' if device.sharded else ''}{threads or ' processes'}"
    passes = f"{device.micro_batch} examples a pass" if device.micro_batch else ""
    compiler = f"compiled by {device.compiler}" if device.compiler else ""
    precision = "bf16" if device.bf16 else "fp32"
    if device.bf16 and device.torch_device.type == "cpu" and torch.cpu.get_capabilities().get("amx_tile"):
        precision += " with AMX"  # which sums in another order than AVX-512
    limits = [f"{name}={os.environ[name]}" for name in LIMITS if threads and os.environ.get(name)]
    versions = [f"torch {torch.__version__}", f"transformers {installed('transformers')}"]
    return ", ".join(filter(None, [where, processes, passes, compiler, precision, *limits, *versions]))


def _lock_of(place: Path) -> Path:
    return place.with_name(f"{place.name}.lock")


def _seconds() -> float:
    wanted = os.environ.get("RETRACE_SAVE_SECONDS") or str(SECONDS)
    with suppress(ValueError):
        if float(wanted) >= 0:
            return float(wanted)
    raise InputError(f"RETRACE_SAVE_SECONDS: {wanted!r} is not allowed; expected seconds, 0 or more")


def find_damage(path: Path) -> Path | None:
    """The first damaged file of a checkpoint; None if it is intact."""
    return damaged(path, file_digests([path])) if (path / SUMS).is_file() else path / SUMS


def _optimizer_tensors(optimizers: list[Optimizer], device: Device) -> dict[str, Tensor]:
    """The optimizers' state as whole tensors, by optimizer, weight and name, on the main process."""
    found = {}
    for number, optimizer in enumerate(optimizers):
        for index, tensors in optimizer.state_dict()["state"].items():
            for name, tensor in tensors.items():
                complete = full_tensor(tensor)
                if device.is_main:  # all together may not fit on one GPU
                    found[f"optimizer/{number}/{index}/{name}"] = complete.cpu() if device.sharded else complete
    return found


def _load_optimizer(optimizer: Optimizer, saved: Iterable[tuple[str, Tensor]]) -> None:
    """Load the result of `_optimizer_tensors`; with sharding, each process keeps its shard."""
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in saved:
        index, name = key.split("/")
        weight = weights[int(index)]
        mine = local_shard(tensor, weight) if tensor.shape == weight.shape else tensor  # else the step count
        state.setdefault(int(index), {})[name] = mine
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def _generators(device: Device) -> dict[str, Tensor]:
    """The states of this process's generators that training draws from."""
    states = {f"generator/{device.rank}/cpu": torch.get_rng_state()}
    if device.torch_device.type == "cuda":
        states[f"generator/{device.rank}/cuda"] = torch.cuda.get_rng_state()
    return states


def _set_generators(states: dict[str, Tensor], device: Device) -> None:
    """Restore this process's generators; those that were not saved, on other hardware, stay as they are."""
    if "cpu" in states:
        torch.set_rng_state(states["cpu"])
    if "cuda" in states and device.torch_device.type == "cuda":
        torch.cuda.set_rng_state(states["cuda"])
