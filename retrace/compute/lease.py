"""A lease on a GPU, so that processes that run side by side take one each.

A lease is a file lock in the temporary folder, which all workspaces and users of a machine share. The system releases
it when the process ends, however it ends. GPUs are identified by UUID, as Slurm's jobs see different ones under the
same number.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TextIO

import psutil

from retrace.core.environment import is_true
from retrace.core.errors import InputError
from retrace.core.guard import PAUSE, holder, take

_leases: list[TextIO] = []  # open until the process ends


def lease_gpus() -> None:
    """Wait for a free GPU and make it the only one that CUDA sees; do nothing if there are no GPUs.

    Processes started by one launcher on this machine take the GPUs of their ranks, in order of rank, and go on when all
    have theirs. In any other order two launches could wait for each other forever, and a process that went on alone
    would time out waiting for the others to join its process group.

    Must be called before CUDA starts. `RETRACE_SHARE_GPUS=true` leaves all GPUs to everyone. Raises InputError if a
    launcher started more processes than there are GPUs.
    """
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")  # nvidia-smi's; CUDA's own begins with the fastest
    gpus = {} if _leases else visible_gpus()
    names, uuids = list(gpus), list(gpus.values())
    rank, processes = int(os.environ.get("LOCAL_RANK", "0")), int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    is_shared = is_true("RETRACE_SHARE_GPUS")
    is_alone = len(gpus) == 1 or (len(gpus) > 1 and processes == 1 and not is_shared)  # sees one, or will
    if is_alone and rank > 0:  # Slurm may show each process a GPU of its own
        os.environ["LOCAL_RANK"] = "0"  # DistributedDataParallel takes the GPU of this number
    if is_shared:
        return
    if is_alone:
        os.environ["CUDA_VISIBLE_DEVICES"] = names[_take_first(uuids, processes)]
    elif processes <= len(gpus):
        if rank > 0:
            _await_taken(uuids[rank - 1])
        _take_first([uuids[rank]])
        _await_taken(uuids[processes - 1])
    elif gpus:
        raise InputError(f"{processes} processes share {len(gpus)} GPUs here; expected at most one process for each")


def visible_gpus() -> dict[str, str]:
    """The UUIDs of the GPUs that this process may use, by their names in CUDA_VISIBLE_DEVICES, in CUDA's order."""
    command = ("nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader")
    try:
        uuids = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    except (FileNotFoundError, subprocess.CalledProcessError):
        return {}
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    found = {}
    for name in uuids if visible is None else map(str.strip, visible.split(",")):
        number = int(name) if name.isdecimal() else None
        meant = [uuid for place, uuid in enumerate(uuids) if name and (place == number or uuid.startswith(name))]
        if name.startswith("MIG-"):  # a part of a GPU, which has a UUID of its own
            meant = [name]
        if not meant:
            break  # CUDA ignores an unknown GPU and all after it
        found[name] = meant[0]
    return found


def _take_first(uuids: Sequence[str], processes: int = 1) -> int:
    """Wait until one of these GPUs is free, take it, and return its index.

    Raises InputError if another of several `processes` of one launcher has it: they would wait for each other.
    """
    said = False
    while True:
        for place, uuid in enumerate(uuids):
            mask, path = os.umask(0), _lock_of(uuid)  # so that other users can lock the file too, but not remove it
            try:
                path.parent.mkdir(0o1777, parents=True, exist_ok=True)
                lease = take(path)
            finally:
                os.umask(mask)
            if lease is not None:
                _leases.append(lease)
                return place
        holders = [found for uuid in uuids if (found := holder(_lock_of(uuid))) is not None]
        busy = sorted({found.process for found in holders if found.process})  # it is 0 until the holder wrote it
        if processes > 1 and any(map(_is_of_this_launcher, busy)):
            raise InputError(f"{processes} processes share {uuids[0]}; expected at most one process for each GPU")
        if busy and not said:
            which = "a GPU" if len(uuids) > 1 else uuids[0]
            print(f"waiting for {which}; in use by PID {', '.join(map(str, busy))}", file=sys.stderr, flush=True)
            said = True
        time.sleep(PAUSE)


def _lock_of(uuid: str) -> Path:
    return Path(tempfile.gettempdir()) / "retrace-gpus" / f"{uuid}.lock"


def _await_taken(uuid: str) -> None:
    """Wait until this process, or another of the same launcher, has taken a GPU."""
    while (other := holder(_lock_of(uuid))) is None or not _is_of_this_launcher(other.process):
        time.sleep(PAUSE)


def _is_of_this_launcher(process: int) -> bool:
    """Whether a process was started by the one that started this one."""
    with suppress(psutil.Error):  # it has ended, or is hidden as another user's
        return psutil.Process(process).ppid() == os.getppid()
    return False
