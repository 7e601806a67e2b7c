"""Python imports this by itself where its folder is on PYTHONPATH: then nothing leaves this machine.

Names are resolved and connections made to loopback only. Any other attempt fails as it does without a
network, and is noted in the file that OUTSIDE_LOG names, if it does. And what a client waits between two tries is
shortened to a twentieth.
"""

import errno
import ipaddress
import os
import socket
import time
from pathlib import Path
from typing import Any

_sleep = time.sleep
_getaddrinfo, _connect, _connect_ex = socket.getaddrinfo, socket.socket.connect, socket.socket.connect_ex


def _is_local(host: Any) -> bool:
    name = host.decode() if isinstance(host, bytes) else host
    if name in (None, "", "localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _note(host: Any) -> None:
    log = os.environ.get("OUTSIDE_LOG")
    if log:
        with Path(log).open("a") as file:
            file.write(f"{host}\n")


def _resolve(host: Any, *arguments: Any, **keywords: Any) -> Any:
    if not _is_local(host):
        _note(host)
        raise socket.gaierror(socket.EAI_NONAME, f"{host}: only loopback is allowed here")
    return _getaddrinfo(host, *arguments, **keywords)


def _check(this: socket.socket, address: Any) -> None:
    if this.family in (socket.AF_INET, socket.AF_INET6) and not _is_local(address[0]):
        _note(address[0])
        raise OSError(errno.ENETUNREACH, f"{address[0]}: only loopback is allowed here")


def _connect_locally(this: socket.socket, address: Any) -> None:
    _check(this, address)
    _connect(this, address)


def _connect_ex_locally(this: socket.socket, address: Any) -> int:
    _check(this, address)
    return _connect_ex(this, address)


socket.getaddrinfo = _resolve
socket.socket.connect = _connect_locally
socket.socket.connect_ex = _connect_ex_locally
time.sleep = lambda seconds: _sleep(float(seconds) / 20)
