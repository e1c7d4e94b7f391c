"""The application: every route, under one roof."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from starlette.convertors import PathConvertor, register_url_convertor
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.routing import BaseRoute, Router, WebSocketRoute
from starlette.routing import Route as Path
from starlette.types import ASGIApp, Receive, Scope, Send

from everforge.machines.settings import MachineSettings
from everforge.wire.errors import EverforgeError, Forbidden, HostUnknown, RouteNotFound

from .answers import refusal, to_json
from .bounds import bounds
from .calls import Call, count_astray, new_request_id
from .dispatch import Endpoint
from .doors import audit, connect, egress, files, health, identity, instructions, machines, pages, repl, secrets, snapshots, tape, webhooks
from .hosts import Hosts
from .openapi import document
from .origins import Origins, header
from .routes import Route, Routes, SocketRoute
from .service import Service
from .settings import ServerSettings
from .sockets import SocketEndpoint

routes = Routes("server")


class FilePath(PathConvertor):
    """Starlette's own stops at a newline, which a file's name may have."""

    regex = r"[\s\S]*"


register_url_convertor("file", FilePath())


@routes.add("GET", "/openapi.json", scope=None)
async def openapi(call: Call) -> Response:
    """This document."""
    return Response(_document(call.service.settings, call.service.machines.forge.settings), media_type="application/json")


@cache
def _document(server: ServerSettings, machines: MachineSettings) -> bytes:
    return to_json(document(DOORS, SOCKETS, bounds(server, machines)))


DOORS: Sequence[Routes] = (
    instructions.routes,
    machines.routes,
    tape.routes,
    snapshots.routes,
    files.routes,
    egress.routes,
    secrets.routes,
    identity.routes,
    audit.routes,
    webhooks.routes,
    health.routes,
    pages.routes,
    routes,
)
SOCKETS: Sequence[SocketRoute] = (repl.route, connect.route)


def application(service: Service) -> ASGIApp:
    paths: dict[str, dict[str, Route]] = {}
    for door in DOORS:
        for route in door.routes:
            paths.setdefault(route.path, {})[route.method] = route
    routes: list[BaseRoute] = [
        *(WebSocketRoute(socket.path, SocketEndpoint(service, socket.scopes, socket.open)) for socket in SOCKETS),
        *(Path(path, Endpoint(service, path, methods)) for path, methods in _fixed_first(paths)),
    ]
    service.metrics.watch(service.streams, service.witness.recorder, service.webhooks)
    return _Front(Router(routes, redirect_slashes=False, default=_Nowhere(service)), Hosts(service.settings), Origins(service.settings))


def _fixed_first(paths: dict[str, dict[str, Route]]) -> list[tuple[str, dict[str, Route]]]:
    """`/machine/list` is not a machine of that name."""
    return sorted(paths.items(), key=lambda item: item[0].endswith(("{name}", "{id}")) or ":file}" in item[0])


class _Front:
    """Who is asked for, and by whose page? And `//v1/...` is what some clients make of a base address with a slash at its end."""

    def __init__(self, inner: ASGIApp, hosts: Hosts, origins: Origins) -> None:
        self._inner = inner
        self._hosts = hosts
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            try:
                self._hosts.check(header(scope, b"host"))
                if scope["type"] == "websocket":
                    self._origins.check_socket(scope)
            except (Forbidden, HostUnknown) as error:
                await _refuse(error, scope, receive, send)
                return
            if scope["type"] == "http":
                if await self._origins.answer_question(scope, receive, send):
                    return
                send = self._origins.saying(scope, send)
            if scope["path"].startswith("//"):
                scope["path"] = "/" + scope["path"].lstrip("/")
                scope["raw_path"] = b"/" + scope.get("raw_path", b"").lstrip(b"/")
        await self._inner(scope, receive, send)


class _Nowhere:
    """Whatever is asked for that is not here."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return
        request_id = new_request_id()
        error: EverforgeError = RouteNotFound(f"there is nothing at {scope['path'][:200]}; /openapi.json lists what there is")
        try:
            await count_astray(self._service, HTTPConnection(scope), request_id)
        except EverforgeError as e:
            error = e
        await _refuse(error, scope, receive, send, request_id)


async def _refuse(error: EverforgeError, scope: Scope, receive: Receive, send: Send, request_id: str | None = None) -> None:
    response = refusal(error, request_id or new_request_id())
    if scope["type"] == "websocket":
        from starlette.websockets import WebSocket

        socket = WebSocket(scope, receive, send)
        await socket.receive()
        await socket.send_denial_response(response)
        return
    await response(scope, receive, send)
