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
from everforge.wire.errors import EverforgeError, Forbidden, MachineNotFound, ProtocolError
from everforge.wire.events import Position

from ..routes import SocketRoute
from ..service import Service
from ..sockets import CREATES, NEW, Socket, both, read_as, request_id_of, request_id_or_none, unexpected
from ..witness import Scene, hash_of_code
from .instructions import Told, options

REFUSED = -1  # the number of an instruction that was not taken
# The Rust client has room for 64 lines that its program has not taken yet; when one finds none, its program is told nothing more of that instruction.
# So it gets some, and then the time that a program needs to be woken and to print them. Other clients take what comes as it comes.
HASTY = "rust"
BREATH_LINES = 24
BREATH_SECONDS = 0.002


async def open_repl(service: Service, identity: Identity, websocket: WebSocket, scene: Scene) -> Callable[[Socket], Awaitable[None]]:
    """ForeverVM's WebSocket: instructions in, their output and results out."""
    machines = service.machines.of(identity.account, identity.tags)
    name = await named_or_new(machines, identity, websocket.path_params["name"], scene)
    hasty = websocket.headers.get("x-forevervm-sdk") == HASTY
    repl = Repl(machines, name, await machines.end_position(name), scene, hasty=hasty)
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
    def __init__(self, machines: Machines, name: str, since: Position, scene: Scene, *, hasty: bool = False) -> None:
        self._scene = scene
        self._hasty = hasty
        self._sent = 0
        self._machines = machines
        self._name = name
        self._since = since
        self._gone: MachineNotFound | None = None
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
                if self._hasty:  # it notes what it asked only after it has asked, and loses an answer that comes before
                    await asyncio.sleep(BREATH_SECONDS)
                await socket.send({"type": "exec_received", "seq": number, "request_id": request_id})

    async def _accept(self, message: dict[str, Any]) -> tuple[int, str]:
        request_id_of(message)  # an answer could not name another one
        if self._gone is not None:  # also when another machine has its name by now
            raise self._gone
        await self._scene.admit()
        text: api.InstructionText = read_as(api.InstructionText, message.get("instruction"))
        number, _ = await self._machines.exec(self._name, text.code, **options(text))
        return number, text.code

    async def _refuse(self, socket: Socket, request_id: str | int | None, error: EverforgeError) -> None:
        await socket.send({"type": "exec_received", "seq": REFUSED, "request_id": request_id})
        await self._fail(socket, REFUSED, error)

    async def _fail(self, socket: Socket, number: int, error: EverforgeError) -> None:
        result = {"error": f"{error.code}: {error.message}", "runtime_ms": 0}
        await socket.send({"type": "result", "instruction_id": number, "instruction_seq": number, "result": result})

    async def _tell(self, socket: Socket) -> None:
        await self._tell_tape(socket)  # MachineNotFound where it is no longer for who asks, which ends the socket
        await self._bury(socket, MachineNotFound(f"machine {self._name} was deleted"))

    async def _bury(self, socket: Socket, error: MachineNotFound) -> None:
        """On a closed socket the Rust client waits for ever, so this one stays open: what ran has a result, and what comes is refused."""
        async with self._telling:
            self._gone = error
            for number in self._mine:
                await self._fail(socket, number, error)
            self._mine.clear()
        await asyncio.Event().wait()  # until the client goes

    async def _tell_tape(self, socket: Socket) -> None:
        async for event in self._machines.read(self._name, self._since, follow=True):
            told = await self._told(getattr(event, "instruction", None))
            if told is None:
                continue
            for message in told.of(event):
                await socket.send(message)
                if self._hasty:
                    await self._breathe()
            if told.over:
                del self._mine[told.seq]

    async def _breathe(self) -> None:
        self._sent += 1
        if self._sent % BREATH_LINES == 0:
            await asyncio.sleep(BREATH_SECONDS)

    async def _told(self, number: int | None) -> Told | None:
        if self._telling.locked():  # it may just be becoming one of ours
            async with self._telling:
                pass
        return None if number is None else self._mine.get(number)


def _notes(number: int, code: str) -> dict[str, Any]:
    return {"instruction_seq": number, "code_sha256": hash_of_code(code)}
