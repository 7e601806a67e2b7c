"""Python imports this by itself where its folder is on PYTHONPATH: then nothing leaves this machine.

Names are resolved and connections made to loopback only. Any other attempt fails as it does without a network, and is
noted in the file that OUTSIDE_LOG names, if it is set. A client's waits between two tries are shortened to a twentieth.
"""

import errno
import ipaddress
import os
import socket
import sys
import time
from pathlib import Path
from typing import Any

_sleep = time.sleep


def _is_local(host: Any) -> bool:
    name = host.decode() if isinstance(host, bytes) else host
    try:
        return name in (None, "", "localhost") or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    """What Python says before it resolves a name (of which the host is the first) and before it connects a socket."""
    if event == "socket.getaddrinfo":
        host, refusal = arguments[0], socket.gaierror(socket.EAI_NONAME, "only loopback is allowed here")
    elif event == "socket.connect" and arguments[0].family in (socket.AF_INET, socket.AF_INET6):
        host, refusal = arguments[1][0], OSError(errno.ENETUNREACH, "only loopback is allowed here")
    else:
        return
    if not _is_local(host):
        if os.environ.get("OUTSIDE_LOG"):
            with Path(os.environ["OUTSIDE_LOG"]).open("a") as file:
                file.write(f"{host}\n")
        raise refusal


sys.addaudithook(_audit)
time.sleep = lambda seconds: _sleep(float(seconds) / 20)
