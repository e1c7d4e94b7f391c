"""WebSockets, as all our doors use them: refused in the handshake, text only, with a deadline for every frame that goes out."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any, cast

from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from everforge import __version__
from everforge.wire import api
from everforge.wire.errors import EverforgeError, InvalidInput, ProtocolError, TooSlow
from everforge.wire.sentences import show

from .answers import refusal, to_json
from .bodies import TOO_HEAVY, decode
from .calls import admit, bearer, count, new_request_id
from .departures import LARGE_BYTES, Departures, size_of
from .service import Service
from .weight import is_too_heavy
from .witness import Scene, Sight, address_of

log = logging.getLogger(__name__)
REQUEST_ID_LENGTH_MAX = 200
NEW = "new"  # in the place of a name: a machine is made for the connection, and
CREATES = "machine.create"  # is what the audit log calls it
BROKEN_PROTOCOL, STOPPING, FAILED, TOKEN_REVOKED, MACHINE_DELETED, TOO_SLOW = 1008, 1012, 1011, 4001, 4404, 4408


class Gone(Exception):
    """The client went away, or does not take what it is sent."""


class Socket:
    """One accepted connection."""

    def __init__(self, socket: WebSocket, departures: Departures, write_seconds: float) -> None:
        self._socket = socket
        self._departures = departures
        self._write_seconds = write_seconds
        self._sending = asyncio.Lock()

    async def send(self, message: Any) -> None:
        """A large one waits for its room, and has it until the client has taken it."""
        if (size := size_of(message)) <= LARGE_BYTES:
            await self._send(_frame(message))
            return
        try:
            departure = await self._departures.room(size, self._write_seconds)
        except TooSlow:
            raise Gone("does not read") from None
        with departure:
            async with self._departures.turn():
                frame = _frame(message)
            departure.hold(size + len(frame["text"]))
            await self._send(frame)

    async def _send(self, frame: dict[str, Any]) -> None:
        async with self._sending:
            try:
                async with asyncio.timeout(self._write_seconds):
                    await self._socket.send(frame)
            except TimeoutError:
                raise Gone("does not read") from None
            except (WebSocketDisconnect, RuntimeError, OSError):
                raise Gone from None

    async def receive(self) -> dict[str, Any]:
        """The next message, an object. Raises ProtocolError, Gone."""
        message = await self._socket.receive()
        if message["type"] == "websocket.disconnect":
            raise Gone
        text = message.get("text")
        if text is None:
            raise ProtocolError("only text frames are understood here")
        if is_too_heavy(text.encode()):
            raise ProtocolError(f"a frame cannot be read: {TOO_HEAVY}")
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            raise ProtocolError("a frame is not JSON") from None
        if not isinstance(found, dict):
            raise ProtocolError("a frame is a JSON object")
        return cast(dict[str, Any], found)

    async def close(self, code: int, reason: str = "") -> None:
        try:
            async with asyncio.timeout(self._write_seconds):
                await self._socket.close(code, reason[:100])
        except (TimeoutError, RuntimeError, OSError, WebSocketDisconnect):
            return


def _frame(message: Any) -> dict[str, Any]:
    return {"type": "websocket.send", "text": to_json(message).decode("ascii")}


class SocketEndpoint:
    """An ASGI application for one path: `open` is given the connection before it is accepted, may refuse it, and returns what to do with it then."""

    def __init__(self, service: Service, scopes: tuple[api.Scope, ...], open: Callable[..., Awaitable[Callable[[Socket], Awaitable[None]]]]) -> None:
        self._service = service
        self._scopes = scopes
        self._open = open

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        websocket = WebSocket(scope, receive, send)
        request_id = new_request_id()
        await websocket.receive()  # websocket.connect
        sight = _sight(websocket, request_id)
        try:
            identity = await admit(self._service, websocket, sight, *self._scopes)
            self._service.streams.check_room(identity)
            scene = Scene(self._service.witness, identity, sight.address, request_id, lambda: count(self._service, identity))
            talk = await self._open(self._service, identity, websocket, scene)
        except EverforgeError as e:
            if sight.caller is None:
                sight.token = self._service.accounts.id_of(bearer(websocket))
            await self._service.witness.saw(sight, e)
            await websocket.send_denial_response(refusal(e, request_id))
            return
        except Exception:
            log.exception("WebSocket %s (%s) failed before it was opened", request_id, show(scope["path"]))
            error = EverforgeError(f"a mistake of the server's, request {request_id}")
            await self._service.witness.saw(sight, error)
            await websocket.send_denial_response(refusal(error, request_id))
            return
        await websocket.send({"type": "websocket.accept", "headers": [(b"x-everforge-version", __version__.encode())]})
        socket = Socket(websocket, self._service.departures, self._service.settings.write_seconds)
        await self._talk(socket, talk, identity, request_id)

    async def _talk(self, socket: Socket, talk: Callable[[Socket], Awaitable[None]], identity: Any, request_id: str) -> None:
        task = asyncio.current_task()
        assert task is not None
        revoked = False

        def cut() -> None:
            nonlocal revoked
            revoked = True
            task.cancel()

        try:
            async with self._service.streams.while_valid(identity, cut):
                await talk(socket)
        except asyncio.CancelledError:
            if not revoked:
                raise
            task.uncancel()
            await socket.close(TOKEN_REVOKED, "the token was revoked")
        except Gone as e:
            if e.args:
                await socket.close(TOO_SLOW, "the client does not read")
        except ProtocolError as e:
            await socket.close(BROKEN_PROTOCOL, e.message)
        except EverforgeError as e:
            await socket.close(FAILED, e.message)
        except Exception:
            log.exception("WebSocket %s failed", request_id)
            await socket.close(FAILED, f"a mistake of the server's, request {request_id}")


def _sight(websocket: WebSocket, request_id: str) -> Sight:
    name = websocket.path_params.get("name")
    action, machine = (CREATES, None) if name == NEW else (None, name)
    return Sight(action, f"WebSocket {websocket.scope['path'][:100]}", address_of(websocket), request_id, machine=machine)


async def both(first: Awaitable[None], second: Awaitable[None]) -> None:
    """Until one of them ends; the other is then cancelled. The first error of either is raised."""
    tasks = [asyncio.ensure_future(first), asyncio.ensure_future(second)]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
    for end in ends:
        if isinstance(end, Exception):
            raise end


def request_id_of(message: dict[str, Any]) -> str | int | None:
    """What the client calls its request; None when it does not. It is told again in the reply, so it must be small. Raises InvalidInput."""
    found = message.get("request_id")
    if isinstance(found, str) and len(found) <= REQUEST_ID_LENGTH_MAX:
        return found
    if found is None or (type(found) is int and -(2**63) <= found < 2**64):
        return found
    raise InvalidInput(f"a request_id is a text of at most {REQUEST_ID_LENGTH_MAX} characters or a whole number of 64 bits")


def request_id_or_none(message: dict[str, Any]) -> str | int | None:
    """The same for a refusal, which may be of just that."""
    try:
        return request_id_of(message)
    except InvalidInput:
        return None


def unexpected(what: str) -> EverforgeError:
    """What a client hears of a mistake of the server's, whose log tells more. To be called where it is caught."""
    id = new_request_id()
    log.exception("%s failed, request %s", what, id)
    error = EverforgeError(f"a mistake of the server's; its log tells more of request {id}")
    error.request_id = id
    return error


def read_as(cls: type, value: Any) -> Any:
    """Part of a message as one of the wire's types. Raises InvalidInput."""
    try:
        return decode(cls, json.dumps(value).encode())
    except (ValueError, RecursionError):
        raise InvalidInput("the message cannot be read") from None
