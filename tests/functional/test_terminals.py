"""Two terminals on one machine, while readers are killed and servers come and go."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from everforge import AsyncEverforge
from kit.real import TESTED, give_template, until_gone
from kit.terminal import COMMAND, PATIENCE_SECONDS, environment, terminal

pytestmark = [pytest.mark.gvisor, pytest.mark.slow]
LOOP = "import itertools, time\nfor i in itertools.count(): print('row', i); time.sleep(0.05)"  # until it is interrupted


def rows(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"row (\d+)\r?\n", text)]


class Server:
    def __init__(self, data: Path) -> None:
        self._data = data
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = found.getsockname()[1]
        give_template(data)

    async def start(self) -> None:
        settings = {"IMAGE": TESTED.image, "MEMORY_MB": str(TESTED.memory_mb), "READY_SANDBOXES": "0"}
        env = {**os.environ, **{f"EVERFORGE_{name}": value for name, value in settings.items()}}
        words = ("-m", "everforge", "serve", "--port", str(self.port), "--data", str(self._data))
        self._process = await asyncio.create_subprocess_exec(sys.executable, *words, stdout=PIPE, stderr=DEVNULL, env=env)
        assert self._process.stdout is not None
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert (await self._process.stdout.readline()).startswith(b"ready ")

    async def end(self, how: signal.Signals) -> None:
        self._process.send_signal(how)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self._process.wait()

    @property
    def token(self) -> str:
        return (self._data / "owner.token").read_text().strip()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


class Reader:
    """`machine logs` of somebody who remembers what has been printed."""

    def __init__(self, env: Mapping[str, str], cursor: Path) -> None:
        self._env, self._cursor = env, cursor
        self.printed = ""

    async def start(self) -> None:
        words = (*COMMAND, "machine", "logs", "one", "--follow", "--output", "--cursor-file", str(self._cursor))
        self._process: Process = await asyncio.create_subprocess_exec(*words, stdout=PIPE, stderr=DEVNULL, env=dict(self._env))

    @property
    def rows(self) -> list[int]:
        return rows(self.printed)

    async def reads(self, text: str) -> None:
        assert self._process.stdout is not None
        async with asyncio.timeout(PATIENCE_SECONDS):
            while text not in self.printed:
                line = await self._process.stdout.readline()
                assert line, "it ended"
                self.printed += line.decode()

    async def kill(self) -> None:
        self._process.kill()
        assert self._process.stdout is not None
        self.printed += (await self._process.stdout.read()).decode()
        await self._process.wait()


@asynccontextmanager
async def served(data: Path) -> AsyncGenerator[Server]:
    server = Server(data)
    await server.start()
    try:
        yield server
        async with AsyncEverforge(server.token, server.url) as client:
            await client.machine("one").delete()
    finally:
        await server.end(signal.SIGTERM)
    await until_gone(data, seconds=60)  # a warden waits half a minute for the next server


async def test_two_terminals_go_on_through_a_kill_of_one_and_two_restarts_of_the_server(data: Path, tmp_path: Path) -> None:
    async with served(data) as server:
        async with AsyncEverforge(server.token, server.url) as client:
            await client.create("one")
        env = environment(server.url, server.token, tmp_path)
        reader = Reader(env, tmp_path / "cursor")
        with terminal(env, "repl", "one", "--instruction-timeout-seconds", "600") as person:
            await person.prompted()
            person.types(f"\x1b[200~{LOOP}\x1b[201~\r\r")
            await reader.start()
            await reader.reads("row 20\n")
            await reader.kill()
            await reader.start()
            await reader.reads("row 60\n")
            await server.end(signal.SIGKILL)  # the machine goes on meanwhile
            await server.start()
            await reader.reads(f"row {reader.rows[-1] + 100}\n")
            seen = await person.sees("connected again")
            await server.end(signal.SIGTERM)  # it goes on then, too
            await server.start()
            seen += await person.sees("connected again")
            await reader.reads(f"row {reader.rows[-1] + 100}\n")
            person.types("\x03")
            seen += await person.sees("KeyboardInterrupt")
            await person.prompted()
            person.types("print('row', 9999)\r")
            await reader.reads("row 9999\n")
            await reader.kill()
            seen += await person.prompted()
            assert rows(seen) == reader.rows == [*range(len(reader.rows) - 1), 9999]

            person.types("while True: pass\r")
            await person.sees("\x1b[?2004l")
            await until_busy(server)
            person.types("\x03")
            await person.sees("KeyboardInterrupt")
            await person.prompted()


async def until_busy(server: Server) -> None:
    async with AsyncEverforge(server.token, server.url) as client, asyncio.timeout(PATIENCE_SECONDS):
        while (await client.machine("one").info()).state != "busy":
            await asyncio.sleep(0.05)
