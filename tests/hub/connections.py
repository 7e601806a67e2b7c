"""HTTP itself: connections, requests read from them, responses written, and what faults do on the way."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

from tests.hub.faults import Cut, Fault, Silence, WrongBytes
from tests.hub.messages import Request, Response

POLL = 0.02  # seconds until a server sees that it is to stop
PATIENCE = 10.0  # seconds for a thread to end then

Serve = Callable[[Request], tuple[Response | None, Fault | None]]


class Server(ThreadingHTTPServer):
    """Listens on a free port of loopback until it is stopped.

    `serve` gives the response, none where the connection is to be closed without one, and the fault to do.
    """

    def __init__(self, serve: Serve) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.address = f"http://127.0.0.1:{self.server_port}"
        self.serve = serve
        self.stopping = threading.Event()
        self._connections: dict[threading.Thread, socket.socket] = {}
        self._accepting = threading.Thread(target=self.serve_forever, args=(POLL,), daemon=True)
        self._accepting.start()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread of its own, which never keeps the process alive."""
        thread = threading.Thread(target=self.process_request_thread, args=(request, client_address), daemon=True)
        self._connections[thread] = request
        thread.start()

    def stop(self) -> None:
        """Accept nothing more, close what is open and wait for the threads."""
        self.stopping.set()
        self.shutdown()
        self._accepting.join(PATIENCE)
        self.server_close()
        for thread, connection in self._connections.items():
            with suppress(OSError):  # it may be closed already
                connection.shutdown(socket.SHUT_RDWR)
            thread.join(PATIENCE)


class _Handler(BaseHTTPRequestHandler):
    """Serves the requests of one connection, one after the other."""

    protocol_version = "HTTP/1.1"  # the connection is kept open
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body in one packet where they fit

    def _serve(self) -> None:
        server = cast(Server, self.server)
        response, fault = server.serve(self._read())
        if response:
            self._write(response, fault)
            return
        if isinstance(fault, Silence):
            server.stopping.wait(fault.seconds)
        self.close_connection = True

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815

    def _read(self) -> Request:
        length = int(self.headers.get("Content-Length", 0))
        body = self._chunks() if self.headers.get("Transfer-Encoding") == "chunked" else self.rfile.read(length)
        path, _, query = self.path.partition("?")
        return Request(self.command, path, query, self.headers, body)

    def _chunks(self) -> bytes:
        """The body of a request whose length was not known beforehand."""
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _write(self, response: Response, fault: Fault | None) -> None:
        body = response.body
        self.send_response(response.status)
        for name, value in {**response.headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if fault == WrongBytes():
            body = bytes(byte ^ 0xFF for byte in body)
        if fault == Cut("body"):
            body, self.close_connection = body[: len(body) // 2], True
        if self.command != "HEAD":
            self.wfile.write(body)
        self.wfile.flush()

    def handle(self) -> None:
        with suppress(ConnectionError):  # the client has gone
            super().handle()

    def finish(self) -> None:
        with suppress(ConnectionError):
            super().finish()

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing; the hub keeps a record."""
