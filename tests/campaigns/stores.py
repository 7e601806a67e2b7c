"""Where a remote of DVC keeps its files: a folder, and a bucket of an S3 server behind a connection that can be cut."""

import logging
import math
import os
import socket
import threading
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Any, cast

PIECE = 1 << 12  # bytes passed on at once


class Folder:
    """A folder of this machine; files go by their path below the remote's url."""

    wire = None

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.url, self.settings, self._folder = str(folder), {}, folder

    def times(self) -> dict[str, Any]:
        """When each file was written."""
        found = (path for path in self._folder.rglob("*") if path.is_file() and not path.name.endswith(".tmp"))
        return {path.relative_to(self._folder).as_posix(): path.stat().st_mtime_ns for path in found}

    def read(self, name: str) -> bytes:
        return (self._folder / name).read_bytes()

    def write(self, name: str, content: bytes) -> None:
        path = self._folder / name
        path.unlink()
        path.write_bytes(content)
        path.chmod(0o444)  # which makes DVC treat a file of its cache as intact

    def remove(self, name: str) -> None:
        (self._folder / name).unlink()


class Bucket:
    """A bucket of a server (moto) that ends with this process. Clients reach it by a wire, this object past it."""

    NAME, PREFIX = "results", "lab/"

    def __init__(self) -> None:
        boto3, moto = import_module("boto3"), import_module("moto.server")  # here, as the folder does without
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        server = moto.ThreadedMotoServer("127.0.0.1", 0)
        server.start()
        host, port = server.get_host_and_port()
        self.wire = Wire(port)
        self.url, self.settings = f"s3://{self.NAME}/{self.PREFIX}", {"endpointurl": self.wire.address}
        self._client = boto3.client("s3", endpoint_url=f"http://{host}:{port}")
        place: Any = {"LocationConstraint": os.environ["AWS_DEFAULT_REGION"]}
        self._client.create_bucket(Bucket=self.NAME, CreateBucketConfiguration=place)

    def times(self) -> dict[str, Any]:
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self.NAME)
        found = (each for page in pages for each in page.get("Contents", []))
        return {each["Key"].removeprefix(self.PREFIX): each["LastModified"] for each in found}

    def read(self, name: str) -> bytes:
        return self._client.get_object(Bucket=self.NAME, Key=self.PREFIX + name)["Body"].read()

    def write(self, name: str, content: bytes) -> None:
        self._client.put_object(Bucket=self.NAME, Key=self.PREFIX + name, Body=content)

    def remove(self, name: str) -> None:
        self._client.delete_object(Bucket=self.NAME, Key=self.PREFIX + name)


class Wire(ThreadingTCPServer):
    """A port that forwards everything to another one until it is cut; if `silent`, it listens and never answers."""

    daemon_threads = True

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.port, self.left, self.passed, self.silent = port, math.inf, 0, False
        self.address = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def cut_after(self, size: float) -> None:
        """Cut all connections after this many bytes in both directions, and any later one at once."""
        self.left, self.passed = size, 0

    def takes(self, size: int) -> bool:
        """Whether this many more bytes are passed on."""
        self.left, self.passed = self.left - size, self.passed + size
        return self.left > 0


class _Connection(BaseRequestHandler):
    """Two sockets, each of which receives what the other sends."""

    def handle(self) -> None:
        wire, client = cast(Wire, self.server), cast(socket.socket, self.request)
        if wire.silent:
            with suppress(OSError):
                while client.recv(PIECE):
                    pass
        if wire.silent or wire.left <= 0:
            return
        with socket.create_connection(("127.0.0.1", wire.port)) as server:
            back = threading.Thread(target=self._pass_on, args=(server, client), daemon=True)
            back.start()
            self._pass_on(client, server)
            back.join()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        wire = cast(Wire, self.server)
        with suppress(OSError):
            while (piece := source.recv(PIECE)) and wire.takes(len(piece)):
                target.sendall(piece)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
