"""Slurm itself: its two daemons on this machine, and two nodes that are both this machine.

Needs root and Debian's packages slurm-wlm and munge.
"""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.toy import ROOT

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun")
LIFE = 7200  # seconds after which the daemons end, whatever became of who started them
CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
NodeName=node[1-2] NodeHostname={host} NodeAddr=127.0.0.1 Port={ports} CPUs=2
PartitionName=all Nodes=ALL Default=YES State=UP
"""


def is_missing() -> bool:
    """Whether there is no Slurm here that could be started."""
    return os.getuid() != 0 or any(shutil.which(name) is None for name in PROGRAMS)


@contextmanager
def cluster(folder: Path) -> Iterator[dict[str, str]]:
    """The variables of processes that are to use this Slurm, which keeps its files in a folder."""
    below = folder.relative_to(tempfile.gettempdir())
    for above in (folder, *folder.parents[: len(below.parts) - 1]):
        above.chmod(0o755)  # munge's rule
    (folder / "state").mkdir()
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = min(free.getsockname()[1], 60_000)
    text = CONFIGURATION.format(folder=folder, host=socket.gethostname(), port=port, ports=f"[{port + 1}-{port + 2}]")
    (folder / "slurm.conf").write_text(text)
    variables = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf"), "PYTHONPATH": str(ROOT)}
    commands = [
        ["munged", "-F", f"--socket={folder}/munge.socket", f"--key-file={key}", f"--seed-file={folder}/seed",
         f"--pid-file={folder}/munge.pid"],
        ["slurmctld", "-D"],
        *(["slurmd", "-D", "-N", f"node{number}"] for number in (1, 2)),
    ]  # fmt: skip
    with ExitStack() as daemons:
        for number, command in enumerate(commands):
            log = daemons.enter_context((folder / f"{number}.log").open("w"))
            daemon = subprocess.Popen(["timeout", str(LIFE), *command], env=variables, stdout=log, stderr=log)
            daemons.callback(daemon.wait)
            daemons.callback(daemon.terminate)
            time.sleep(1)
        yield variables
