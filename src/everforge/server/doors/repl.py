"""ForeverVM's WebSocket: `exec` in, `exec_received`, `output` and `result` out, of the instructions that came in on this socket and of no others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.websockets import WebSocket

from everforge.accounts.identity import Identity
from everforge.machines.service import Machines
from everforge.store.threads import to_its_end
from everforge.wire import api
from everforge.wire.errors import EverforgeError, Forbidden, ProtocolError
from everforge.wire.events import Position

from ..routes import SocketRoute
from ..service import Service
from ..sockets import CREATES, NEW, Socket, both, read_as, request_id_of, request_id_or_none, unexpected
from ..witness import Scene, hash_of_code
from .instructions import Told, options

REFUSED = -1  # the number of an instruction that was not taken


async def open_repl(service: Service, identity: Identity, websocket: WebSocket, scene: Scene) -> Callable[[Socket], Awaitable[None]]:
    """ForeverVM's WebSocket: instructions in, their output and results out."""
    machines = service.machines.of(identity.account, identity.tags)
    name = await named_or_new(machines, identity, websocket.path_params["name"], scene)
    repl = Repl(machines, name, await machines.end_position(name), scene)
    return repl.talk


route = SocketRoute(path="/v1/machine/{name}/repl", scopes=("exec",), open=open_repl)


async def named_or_new(machines: Machines, identity: Identity, name: str, scene: Scene) -> str:
    if name != NEW:
        return (await machines.get(name)).record.name
    if "manage" not in identity.scopes:
        raise Forbidden("this token may not create machines: it lacks the scope manage")
    return await to_its_end(_created(machines, scene))


async def _created(machines: Machines, scene: Scene) -> str:
    """That it was refused is for who opens the socket to tell."""
    made = (await machines.create()).record.name
    await scene.saw(CREATES, made, wait=True)
    return made


class Repl:
    def __init__(self, machines: Machines, name: str, since: Position, scene: Scene) -> None:
        self._scene = scene
        self._machines = machines
        self._name = name
        self._since = since
        self._mine: dict[int, Told] = {}
        self._telling = asyncio.Lock()  # an instruction is announced before anything of it is told

    async def talk(self, socket: Socket) -> None:
        await socket.send({"type": "connected", "machine_name": self._name})
        await both(self._listen(socket), self._tell(socket))

    async def _listen(self, socket: Socket) -> None:
        while True:
            message = await socket.receive()
            if message.get("type") != "exec":
                raise ProtocolError('the only message understood here is "exec"')
            await self._exec(socket, message)

    async def _exec(self, socket: Socket, message: dict[str, Any]) -> None:
        """Whatever goes wrong is told as a result: an error message makes these clients hang."""
        request_id = request_id_or_none(message)
        async with self._telling:
            try:
                number, _ = await self._scene.watched("machine.exec", self._name, self._accept(message), lambda taken: _notes(*taken))
            except EverforgeError as e:
                await self._refuse(socket, request_id, e)
            except Exception:
                await self._refuse(socket, request_id, unexpected("an instruction of a WebSocket"))
            else:
                self._mine[number] = Told(number)
                await socket.send({"type": "exec_received", "seq": number, "request_id": request_id})

    async def _accept(self, message: dict[str, Any]) -> tuple[int, str]:
        request_id_of(message)  # an answer could not name another one
        await self._scene.admit()
        text: api.InstructionText = read_as(api.InstructionText, message.get("instruction"))
        number, _ = await self._machines.exec(self._name, text.code, **options(text))
        return number, text.code

    async def _refuse(self, socket: Socket, request_id: str | int | None, error: EverforgeError) -> None:
        await socket.send({"type": "exec_received", "seq": REFUSED, "request_id": request_id})
        result = {"error": f"{error.code}: {error.message}", "runtime_ms": 0}
        await socket.send({"type": "result", "instruction_id": REFUSED, "instruction_seq": REFUSED, "result": result})

    async def _tell(self, socket: Socket) -> None:
        async for event in self._machines.read(self._name, self._since, follow=True):
            told = await self._told(getattr(event, "instruction", None))
            if told is None:
                continue
            for message in told.of(event):
                await socket.send(message)
            if told.over:
                del self._mine[told.seq]

    async def _told(self, number: int | None) -> Told | None:
        if self._telling.locked():  # it may just be becoming one of ours
            async with self._telling:
                pass
        return None if number is None else self._mine.get(number)


def _notes(number: int, code: str) -> dict[str, Any]:
    return {"instruction_seq": number, "code_sha256": hash_of_code(code)}
