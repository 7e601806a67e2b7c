"""Checkpoints of a training run, so that a rerun after a crash resumes there and ends with the same bytes.

A checkpoint is an atomic folder: all that the run is made of, gathered where it is sharded, and a checksum. The last
two are kept, and a damaged one is detected and skipped. Checkpoints are outside of what DVC tracks, in a folder named
by a digest of all that the result depends on, so that they are never used with other settings or code. One run at a
time owns that folder.
"""

import hashlib
import json
import os
import shutil
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TextIO

import torch
from accelerate.utils import broadcast_object_list, gather_object
from torch import Tensor, nn
from torch.optim import Optimizer

from retrace.compute.device import Device
from retrace.compute.sharding import full_tensor, gather_weights, load_weights, local_shard
from retrace.core.errors import InputError
from retrace.core.files import atomic_folder, write_text
from retrace.core.guard import file_digest, take

STATE, CHECKSUM = "state.pt", "checksum"
SAVED = 2  # checkpoints kept
PLACES = 64  # processes that may do the same run, each with checkpoints of its own
RECENT = 20  # updates over which the loss is averaged to detect divergence
SECONDS = 120.0  # between two checkpoints, unless RETRACE_SAVE_SECONDS is set


@dataclass
class Position:
    """The position of a run between two updates, and its running sums."""

    step: int = 0  # updates done
    epoch: int = -1  # last epoch whose evaluation is done; 0 is the model before training
    summed: float = 0.0  # loss of the current epoch so far, nats
    targets: int = 0  # number of targets of that sum
    recent: list[float] = field(default_factory=list)  # loss per target of the last updates, oldest first
    lowest: float | None = None  # lowest mean of so many updates so far
    tokens: int = 0  # of the whole run, without padding
    elapsed: float = 0.0  # seconds of training so far, as agreed on by all processes
    seconds: float = 0.0  # of updates and checkpoints, without evaluation and waiting for data
    waited: float = 0.0  # seconds of waiting for data
    points: list[list[float]] = field(default_factory=list)  # of the curve: updates done, mean loss since the last
    since: float = 0.0  # loss since the last point, nats
    targets_since: int = 0  # number of targets of that sum

    def add(self, loss: float, targets: int, tokens: int, seconds: float) -> None:
        """Count one more update."""
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
        """Begin the epoch after this one."""
        self.epoch, self.summed, self.targets = epoch, 0.0, 0


class Checkpointer:
    """Saves and restores the checkpoints of one run."""

    def __init__(self, name: str, digest: str, device: Device) -> None:
        """`digest` covers all that the run's result depends on, but for the device."""
        layout = [device.processes, torch.get_num_threads(), device.torch_device.type, device.bf16, device.sharded]
        mark = hashlib.sha256(" ".join(map(str, [digest, torch.__version__, *layout])).encode()).hexdigest()
        self._device, self._every, self._last = device, _seconds(), time.monotonic()
        self._folder = Path(os.environ.get("DVC_ROOT") or ".") / ".retrace" / "states" / f"{name}-{mark[:16]}"
        self._lock: TextIO | None = None  # held by the main process for all
        if device.is_main:
            self._folder, self._lock = _free_place(self._folder)
        if device.processes > 1:
            (self._folder,) = broadcast_object_list([self._folder])

    def due(self) -> bool:
        """Whether it is time for another checkpoint; only the main process decides."""
        return self._device.is_main and time.monotonic() - self._last >= self._every

    def save(
        self, model: nn.Module, optimizers: list[Optimizer], at: Position, journal: list[Any], kept: dict[str, Tensor]
    ) -> None:
        """Write a checkpoint and remove all but the last two; every process must call it."""
        generators = [[torch.get_rng_state(), *torch.cuda.get_rng_state_all()]]  # training draws from no others
        state = {
            "progress": json.dumps({"position": asdict(at), "journal": journal}),
            "model": gather_weights(model),
            "optimizers": [_whole_state(optimizer, self._device) for optimizer in optimizers],
            "kept": kept,
            "generators": gather_object(generators) if self._device.processes > 1 else generators,
        }
        if self._device.is_main:
            with atomic_folder(self._folder / f"{at.step:09d}") as folder:
                torch.save(state, folder / STATE)
                write_text(folder / CHECKSUM, file_digest(folder / STATE))
            kept_paths = [path for path in self._paths() if int(path.name) <= at.step][-SAVED:]
            for path in set(self._paths()).difference(kept_paths):  # older ones, and damaged ones of later updates
                shutil.rmtree(path, ignore_errors=True)
        self._last = time.monotonic()
        self._device.accelerator.wait_for_everyone()

    def restore(
        self, model: nn.Module, optimizers: list[Optimizer], journal: list[Any], kept: dict[str, Tensor]
    ) -> tuple[Position, list[str]]:
        """Load the newest undamaged checkpoint; returns its position and messages about it."""
        messages = []
        for path in reversed(self._paths()):
            if not _is_sound(path):
                messages.append(f"the checkpoint of step {int(path.name)} is damaged")
                continue
            # Mapped, so that a process that keeps a shard does not hold the whole.
            state = torch.load(path / STATE, map_location="cpu", mmap=True, weights_only=True)
            load_weights(model, state["model"])
            for optimizer, saved in zip(optimizers, state["optimizers"], strict=True):
                _load_state(optimizer, saved)
            kept.update(state["kept"])
            cpu, *gpus = state["generators"][self._device.rank]
            torch.set_rng_state(cpu)
            torch.cuda.set_rng_state_all(gpus)
            progress = json.loads(state["progress"])
            journal[:] = progress["journal"]
            at = Position(**progress["position"])
            return at, [*messages, f"resuming after step {at.step}"]
        return Position(), messages

    def remove(self) -> None:
        """Remove all checkpoints, after the run is done and its outputs are written."""
        self._device.accelerator.wait_for_everyone()
        if self._lock is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            _lock_of(self._folder).unlink(missing_ok=True)
            self.close()
        self._device.accelerator.wait_for_everyone()

    def close(self) -> None:
        """Release the checkpoints to another run, as the end of this process does."""
        if self._lock is not None:
            self._lock.close()

    def _paths(self) -> list[Path]:
        return sorted(path for path in self._folder.glob("*") if path.name.isdigit())


def _free_place(first: Path) -> tuple[Path, TextIO]:
    """A folder that no other run uses, preferably one with checkpoints, and its lock.

    Workers of `dvc exp run --queue` share the folder of checkpoints, and two may do the same run.
    """
    numbered = [first, *(first.with_name(f"{first.name}-{number}") for number in range(2, PLACES + 1))]
    for place in sorted(numbered, key=lambda place: not any(place.glob("[0-9]*"))):
        lock = take(_lock_of(place))
        if lock is not None:
            return place, lock
    raise InputError(f"{first}: {PLACES} processes are doing this run already")


def _lock_of(place: Path) -> Path:
    return place.with_name(f"{place.name}.lock")


def _seconds() -> float:
    wanted = os.environ.get("RETRACE_SAVE_SECONDS", "")
    try:
        seconds = float(wanted) if wanted else SECONDS
    except ValueError:
        seconds = -1.0
    if not seconds >= 0:
        raise InputError(f"RETRACE_SAVE_SECONDS: {wanted!r} is not allowed; expected seconds, 0 or more")
    return seconds


def _is_sound(path: Path) -> bool:
    try:
        return (path / CHECKSUM).read_text(encoding="utf-8") == file_digest(path / STATE)
    except OSError:
        return False


def _whole_state(optimizer: Optimizer, device: Device) -> dict[int, dict[str, Tensor]]:
    """Whole tensors by weight and name, on the main process alone; every process must call it."""
    found: dict[int, dict[str, Tensor]] = {}
    for index, tensors in optimizer.state_dict()["state"].items():
        complete = {name: full_tensor(tensor) for name, tensor in tensors.items()}
        if device.is_main:
            found[index] = {name: tensor.cpu() for name, tensor in complete.items()}
    return found


def _load_state(optimizer: Optimizer, saved: dict[int, dict[str, Tensor]]) -> None:
    """Load what `_whole_state` returned; of a tensor that is sharded a process keeps its shard."""
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    state = {
        index: {
            name: local_shard(tensor, weights[index]) if tensor.shape == weights[index].shape else tensor
            for name, tensor in tensors.items()  # else the number of updates
        }
        for index, tensors in saved.items()
    }
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
