"""The server of the page: it listens on this machine alone, and takes forms from its own page alone."""

import os
import socket
from collections.abc import Collection, Sequence
from typing import Any
from urllib.parse import parse_qs

from retrace.core.errors import InputError
from retrace.serving.demo import FIELDS, LONGEST, Demo

try:
    from aiohttp import web
except ModuleNotFoundError:
    raise InputError("retrace demo: aiohttp is not installed; pip install aiohttp") from None

HOST = "127.0.0.1"
BODY = 2**19  # bytes of a request: two fields of the longest text, in any script, at most 12 bytes a character
FORM = "application/x-www-form-urlencoded"
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",  # with none at all browsers would send forms with the origin "null"
    "X-Content-Type-Options": "nosniff",
}


def listen(port: int) -> socket.socket:
    """A socket of this machine that others cannot reach; port 0 is any free one.

    Raises InputError where the port is taken or not allowed.
    """
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise InputError(f"--port: {port}: {reason}; expected a free port, such as {port + 1}") from None


def serve(demo: Demo, listener: socket.socket) -> None:
    """Answer requests until Ctrl-C or SIGTERM, one after the other: models answer faster than people ask."""
    port = listener.getsockname()[1]
    hosts = (f"{HOST}:{port}", f"localhost:{port}")

    @web.middleware
    async def checked(request: web.Request, handler: Any) -> web.StreamResponse:
        _check_origin(request, hosts)
        try:
            return await handler(request)
        except InputError as error:
            raise web.HTTPBadRequest(text=f"{error}\n") from None

    async def show(_: web.Request) -> web.Response:
        return web.Response(text=demo.page(), content_type="text/html")

    async def answer(request: web.Request) -> web.Response:
        form = request.match_info["form"]
        return web.Response(text=demo.page(form, await _fields(request, FIELDS[form])), content_type="text/html")

    async def add_headers(_: web.Request, response: web.StreamResponse) -> None:
        response.headers.update({**HEADERS, "Content-Security-Policy": demo.policy})

    app = web.Application(middlewares=[checked], client_max_size=BODY)
    app.on_response_prepare.append(add_headers)
    app.router.add_get("/", show)
    app.router.add_post(f"/{{form:{'|'.join(FIELDS)}}}", answer)
    web.run_app(app, sock=listener, print=None, access_log=None, shutdown_timeout=1.0)


def _check_origin(request: web.Request, hosts: Sequence[str]) -> None:
    """Refuse what another page has a browser send, by its own name or by one that it gave to this address."""
    host, origin = request.headers.get("Host", ""), request.headers.get("Origin")
    if host not in hosts:
        raise web.HTTPForbidden(text=f"Host: {host[:100]!r} is not allowed; expected {' or '.join(hosts)}\n")
    if origin is not None and origin not in [f"http://{host}" for host in hosts]:
        raise web.HTTPForbidden(text=f"Origin: {origin[:100]!r} is not allowed; expected http://{hosts[0]}\n")


async def _fields(request: web.Request, names: Collection[str]) -> dict[str, str]:
    """The fields of a form by name, those that are missing empty."""
    if request.content_type != FORM:
        raise web.HTTPUnsupportedMediaType(
            text=f"Content-Type: {request.content_type!r} is not allowed; expected {FORM}\n"
        )
    try:
        given = parse_qs((await request.read()).decode(), keep_blank_values=True, max_num_fields=8, errors="strict")
    except ValueError as error:
        raise InputError(f"the form cannot be read: {error}") from None
    fields = {name: given.get(name, [""])[0].replace("\r\n", "\n") for name in names}
    for name, text in fields.items():
        if len(text) > LONGEST:
            raise web.HTTPRequestEntityTooLarge(
                LONGEST, len(text), text=f"{name}: {len(text)} characters are too many; expected at most {LONGEST}\n"
            )
    return fields
