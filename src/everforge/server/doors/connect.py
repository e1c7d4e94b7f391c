"""Our own WebSocket: the whole tape of a machine, live and from any position, and requests in the other direction."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.websockets import WebSocket

from everforge import __version__
from everforge.accounts.identity import Identity
from everforge.machines.service import Machines
from everforge.wire import api
from everforge.wire.errors import EverforgeError, InvalidInput, ProtocolError, WrongState
from everforge.wire.events import START, Position

from ..answers import error_body, plain
from ..calls import check_key, new_request_id
from ..numbers import whole
from ..routes import SocketRoute
from ..service import Service
from ..sockets import MACHINE_DELETED, Socket, both, read_as, request_id_of, request_id_or_none, unexpected
from ..views import entry
from ..witness import Scene, hash_of_code
from .instructions import completed, options, which
from .repl import named_or_new

REQUESTS_MAX = 32  # answered at once; more wait in the client's socket


async def open_connect(service: Service, identity: Identity, websocket: WebSocket, scene: Scene) -> Callable[[Socket], Awaitable[None]]:
    """A machine's whole tape, live and from any position, and requests in the other direction."""
    machines = service.machines.of(identity.account, identity.tags)
    after = _after(websocket.query_params.get("after"))
    name = await named_or_new(machines, identity, websocket.path_params["name"], scene)
    end = await machines.end_position(name)
    return Connection(machines, name, end if after is None else after, end, scene).talk


route = SocketRoute(path="/v1/machine/{name}/connect", scopes=("exec", "read"), open=open_connect)


def _after(text: str | None) -> Position | None:
    if text is None:
        return None
    if text == str(START):
        return START
    if (found := whole(text)) is None:
        raise InvalidInput("after must be a position of the tape, or -1 for its beginning")
    return Position(found)


class Connection:
    def __init__(self, machines: Machines, name: str, after: Position, end: Position, scene: Scene) -> None:
        self._scene = scene
        self._machines = machines
        self._name = name
        self._after = after
        self._end = end
        self._requests: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(REQUESTS_MAX)

    async def talk(self, socket: Socket) -> None:
        await socket.send({"type": "connected", "machine_name": self._name, "position": self._end, "version": __version__})
        try:
            await both(self._listen(socket), self._tell(socket))
        finally:
            for task in self._requests:
                task.cancel()
            await asyncio.gather(*self._requests, return_exceptions=True)  # what was begun is in the audit log when this is over

    async def _tell(self, socket: Socket) -> None:
        async for event in self._machines.read(self._name, self._after, follow=True):
            await socket.send(entry(event))
        await socket.close(MACHINE_DELETED, "the machine was deleted")

    async def _listen(self, socket: Socket) -> None:
        """Instructions are taken in the order they come; what asks and waits is done beside them."""
        while True:
            message = await socket.receive()
            act = ACTS.get(str(message.get("type")))
            if act is None:
                raise ProtocolError(f"there is no request of this type; there are {', '.join(ACTS)}")
            if message["type"] == "exec":
                await self._reply(socket, message, act)
                continue
            await self._room.acquire()
            task = asyncio.get_running_loop().create_task(self._reply(socket, message, act))
            self._requests.add(task)
            task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._requests.discard(task)
        self._room.release()
        if not task.cancelled():
            task.exception()  # a client that went away; the listener hears of it too

    async def _reply(self, socket: Socket, message: dict[str, Any], act: Act) -> None:
        try:
            found = await self._acted(message, act)
            reply = {"type": "reply", "request_id": request_id_of(message), **found}
        except EverforgeError as e:
            reply = self._error(message, e)
        except Exception:
            reply = self._error(message, unexpected("a request of a WebSocket"))
        await socket.send(reply)

    async def _acted(self, message: dict[str, Any], act: Act) -> dict[str, Any]:
        doing = self._admitted(message, act)
        if (action := ACTIONS.get(message["type"])) is None:
            return await doing
        return await self._scene.watched(action, self._name, doing, lambda found: _notes(message, found))

    async def _admitted(self, message: dict[str, Any], act: Act) -> dict[str, Any]:
        request_id_of(message)  # a reply could not name another one
        if message["type"] != "ping":
            await self._scene.admit()
        return await act(self._machines, self._name, message)

    def _error(self, message: dict[str, Any], error: EverforgeError) -> dict[str, Any]:
        return {"type": "error", "request_id": request_id_or_none(message), "error": error_body(error, error.request_id or new_request_id())}


def _notes(message: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    if message["type"] != "exec":
        return {}
    return {"instruction_seq": found["instruction_seq"], "code_sha256": hash_of_code(message["instruction"]["code"])}


# --- requests ----------------------------------------------------------------------------------------------------------------------

Act = Callable[[Machines, str, dict[str, Any]], Awaitable[dict[str, Any]]]


async def _exec(machines: Machines, name: str, message: dict[str, Any]) -> dict[str, Any]:
    text: api.InstructionText = read_as(api.InstructionText, message.get("instruction"))
    interrupt = message.get("interrupt", False)
    if not isinstance(interrupt, bool):
        raise InvalidInput("interrupt is true or false")
    number, interrupted = await machines.exec(name, text.code, **options(text), interrupt=interrupt, key=check_key(message.get("key")))
    return {"instruction_seq": number, "interrupted": interrupted}


async def _interrupt(machines: Machines, name: str, message: dict[str, Any]) -> dict[str, Any]:
    wanted: api.Interrupt = read_as(api.Interrupt, {field: message[field] for field in ("pending", "instruction") if field in message})
    return {"interrupted": await machines.interrupt(name, **which(wanted))}


async def _complete(machines: Machines, name: str, message: dict[str, Any]) -> dict[str, Any]:
    wanted: api.Complete = read_as(api.Complete, {field: message[field] for field in ("code", "cursor") if field in message})
    return plain(completed(await machines.complete(name, wanted.code, wanted.cursor)))


async def _answer(machines: Machines, name: str, message: dict[str, Any]) -> dict[str, Any]:
    """`instruction` may be left out: only the one whose turn it is can wait for an answer."""
    wanted: api.Answer = read_as(api.Answer, {field: message[field] for field in ("value", "error") if field in message})
    running = machines.running(name)
    instruction, call = message.get("instruction", running and running.instruction), message.get("call")
    if instruction is None:
        raise WrongState(f"no instruction of {name} waits for an answer")
    if type(instruction) is not int or type(call) is not int:
        raise InvalidInput("an answer names its instruction and its call by their numbers")
    await machines.answer(name, instruction, call, value=wanted.value, error=wanted.error)
    return {}


async def _ping(machines: Machines, name: str, message: dict[str, Any]) -> dict[str, Any]:
    return {}


ACTIONS = {"exec": "machine.exec", "interrupt": "machine.interrupt", "answer": "machine.answer"}  # the others change nothing
ACTS: Mapping[str, Act] = {"exec": _exec, "interrupt": _interrupt, "complete": _complete, "answer": _answer, "ping": _ping}
