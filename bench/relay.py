"""W: a bare relay. The WebSocket library straight onto the pipes of a guest, in a process of its own: no tape, no keeper, no accounts.

As a program (`python -m bench.relay`) it is given the two descriptors, and prints the port that it listens at.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve

from everforge.server import loop
from everforge.wire.messages import End

from .hand import Hand, value_of
from .house import House

STOP_SECONDS = 10.0


class Relay:
    def __init__(self, to_guest: int, from_guest: int) -> None:
        self._hand = Hand(to_guest, from_guest)
        self._hand.attach()
        self._hand.go()
        self._ended: asyncio.Future[End] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().add_reader(from_guest, self._readable)

    async def talk(self, connection: ServerConnection) -> None:
        async for text in connection:
            self._ended = asyncio.get_running_loop().create_future()
            self._hand.give(json.loads(text)["code"])
            await connection.send(json.dumps({"value": value_of(await self._ended)}))

    def _readable(self) -> None:
        if (end := self._hand.look()) is not None:
            self._ended.set_result(end)


async def main() -> None:
    relay = Relay(int(sys.argv[1]), int(sys.argv[2]))
    async with serve(relay.talk, "127.0.0.1", 0, compression=None, ping_interval=None) as server:
        print(next(iter(server.sockets)).getsockname()[1], flush=True)
        await server.serve_forever()


class Relayed:
    """The client of one."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection

    async def run(self, code: str) -> str | None:
        await self._connection.send(json.dumps({"code": code}))
        return json.loads(await self._connection.recv())["value"]


@asynccontextmanager
async def relayed(house: House) -> AsyncGenerator[Relayed]:
    """A relay onto a fresh guest in the same kind of sandbox."""
    sandbox = house.raw.prepare()
    pipes = (sandbox.stdio.to_guest, sandbox.stdio.from_guest)
    try:
        house.raw.start(sandbox, house.template)
        command = [sys.executable, "-m", "bench.relay", *map(str, pipes)]
        process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, pass_fds=pipes)
        try:
            assert process.stdout is not None
            port = int(await process.stdout.readline())
            async with connect(f"ws://127.0.0.1:{port}", compression=None, ping_interval=None, proxy=None) as connection:
                yield Relayed(connection)
        finally:
            process.terminate()
            async with asyncio.timeout(STOP_SECONDS):
                await process.wait()
    finally:
        await house.raw.remove(sandbox)


if __name__ == "__main__":
    loop.run(main())
